"""`data_iterator`: a function that describes a graph becomes one that makes iterators."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any

from headrace.errors import ArgumentTypeError
from headrace.plugin.base_iterator import LastBatchPolicy
from headrace.plugin.jax.documentation import with_parameters_of
from headrace.plugin.jax.iterator import DALIGenericIterator
from headrace.plugin.jax.placement import Placement
from headrace.tracebacks import public

if TYPE_CHECKING:
    import jax
    from jax.sharding import Sharding


@with_parameters_of(DALIGenericIterator)
@public
def data_iterator(
    pipeline_fn: Callable[..., Any] | None = None,
    output_map: Sequence[str] = (),
    size: int = -1,
    reader_name: str | None = None,
    auto_reset: bool | str | None = False,
    last_batch_padded: bool = False,
    last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
    prepare_first_batch: bool = True,
    sharding: Sharding | Mapping[str, Sharding] | None = None,
    devices: Sequence[jax.Device] | None = None,
    pmap_compatible: bool | None = None,
    *,
    split_batches: bool = False,
) -> Any:
    """Decorate a function that returns a pipeline's outputs: calling it makes a JAX iterator.

    The decorated function takes its own arguments and those of `headrace.Pipeline` (`batch_size`,
    `num_threads`, `device_id`, `seed`, ...), and `checkpoints`. It makes the pipelines and
    returns the `DALIGenericIterator` of their batches. With ``enable_checkpointing=True`` that has
    `checkpoints`, from which a later call goes on: ``training(..., checkpoints=saved)``.

    Over several devices there is one pipeline for each part of the batch. The function then has
    the parameters `num_shards` and `shard_id`, and hands them on to its reader. `batch_size` is
    that of the global batch, all devices and processes together.

    Without `sharding` and `devices`, the pipeline runs on the first GPU of JAX, if it has one, and
    on the CPU if not; `device_id` says otherwise. With them, it runs on the devices themselves, if
    they are GPUs. For others, or if `device_id=None` says so, pipelines run on the CPU, and what
    they make is shared with JAX's CPU devices, or uploaded to others without waiting.

    Parameters
    ----------
    pipeline_fn
        The function, when this is used without parentheses. It may be one that `pipeline_def` has
        decorated.
    output_map, size, reader_name, auto_reset, last_batch_padded, last_batch_policy
        See `DALIGenericIterator`.
    prepare_first_batch
        See `DALIGenericIterator`.
    sharding
        Sharding of the arrays, over their first axis only, such as
        ``NamedSharding(mesh, PartitionSpec("batch"))``; or a dictionary with one for each output,
        by its name. In several processes, each makes an iterator, with the same arguments, and
        feeds its own devices.
    devices
        Devices for arrays ``(devices, batch, ...)``, as ``jax.pmap`` takes them. Not together with
        `sharding`.
    pmap_compatible
        Whether arrays have an axis for the devices in front. By default, with `devices` only.
    split_batches
        Have one pipeline on the CPU make whole batches, and split them among the devices: the same
        batches for any number of devices. The function then needs no `num_shards` and `shard_id`,
        except in several processes, of which each makes its part.

    Returns
    -------
    A function that makes a `DALIGenericIterator`; or, without `pipeline_fn`, a decorator.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If arguments do not go together; or, at the call, if the batch size cannot be divided, or
        the function has no parameters `num_shards` and `shard_id` where it needs them.

    Examples
    --------
    ::

        @data_iterator(output_map=["images", "labels"], reader_name="reader")
        def training(root):
            encoded, labels = fn.readers.file(file_root=root, name="reader")
            return fn.resize(fn.decoders.image(encoded), size=(224, 224)), labels


        for batch in training("photos", batch_size=64):
            batch["images"]  # a jax.Array
    """
    return make_decorator(
        DALIGenericIterator,
        pipeline_fn,
        Placement(output_map, sharding, devices, split_batches),
        {
            "size": size,
            "reader_name": reader_name,
            "auto_reset": auto_reset,
            "last_batch_padded": last_batch_padded,
            "last_batch_policy": last_batch_policy,
            "prepare_first_batch": prepare_first_batch,
            "pmap_compatible": pmap_compatible,
        },
    )


def make_decorator(
    iterator: type[DALIGenericIterator],
    pipeline_fn: Callable[..., Any] | None,
    placement: Placement,
    arguments: dict[str, Any],
) -> Any:
    """The decorator for one kind of iterator, or what it makes of `pipeline_fn`."""

    @public
    def decorate(function: Callable[..., Any]) -> Callable[..., Any]:
        if not callable(function):
            raise ArgumentTypeError(f"`data_iterator` decorates a function, got {function!r}.")
        own = inspect.signature(function).parameters

        @public
        @functools.wraps(function)
        def make(*args: Any, checkpoints: Sequence[bytes] | None = None, **kwargs: Any) -> Any:
            pipelines = placement.pipelines(function, own, args, kwargs, checkpoints)
            return iterator(
                pipelines,
                placement.names,
                sharding=placement.sharding,
                devices=placement.devices,
                **arguments,
            )

        return make

    return decorate if pipeline_fn is None else decorate(pipeline_fn)
