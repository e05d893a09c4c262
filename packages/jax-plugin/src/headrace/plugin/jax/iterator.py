"""The iterator that gives JAX's arrays."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

import jax

from headrace.errors import ArgumentTypeError, ArgumentValueError, UsageError
from headrace.plugin.base_iterator import LastBatchPolicy, PipelineBatch, _DaliBaseIterator
from headrace.plugin.iterator_arguments import as_list
from headrace.plugin.jax.arrangement import make_assembly
from headrace.plugin.jax.assembly import Sharded, Split, assembled
from headrace.plugin.state_methods import StateMethods
from headrace.tracebacks import public_methods

if TYPE_CHECKING:
    from jax.sharding import Sharding

    from headrace.pipeline import Pipeline


@public_methods
class GrainMethods(StateMethods):
    """The same under the names that Grain's iterators give them."""

    __slots__ = ()

    def get_state(self) -> dict[str, Any]:
        """`state_dict`, under the name that Grain's iterators give it."""
        return self.state_dict()

    def set_state(self, state: Mapping[str, Any]) -> None:
        """Go on from `state`: `load_state_dict`, under the name that Grain's iterators give it."""
        self.load_state_dict(state)


if TYPE_CHECKING:

    class _Base(GrainMethods, _DaliBaseIterator): ...

else:
    _Base = _DaliBaseIterator


@public_methods
class DALIGenericIterator(_Base):
    """Iterates over batches as JAX's arrays.

    Each step gives one dictionary, from the names of the outputs to arrays whose first axis counts
    the samples. They share the memory of the pipeline's outputs, on the host or on a GPU, and may
    be kept for as long as they are needed. On a GPU, JAX's streams wait for the data, and the
    program does not.

    ===============================  =============================================================
    pipelines                        arrays
    ===============================  =============================================================
    one                              ``(batch, ...)``, where the pipeline made them
    several, without `sharding`      ``(pipelines, batch, ...)``, for ``jax.pmap``
    several, with `sharding`         global arrays; one pipeline for each part of the batch
    one on the CPU, with `sharding`  global arrays; its batches are split among the devices
    ===============================  =============================================================

    A loop over the iterator is one epoch, and the next loop the next epoch, also after a ``break``.

    Parameters
    ----------
    pipelines
        One pipeline or several with the same batch size. With a `sharding` they are listed in the
        order of the parts of the batch; those on GPUs are found by their device.
    output_map
        Names of the outputs of a pipeline, in their order; all different.
    size
        Number of samples in an epoch, all pipelines of the process together. With -1 an epoch
        lasts until an external source has no more data. Not together with `reader_name`.
    reader_name
        Name of the reader in each pipeline that says how long an epoch is. Prefer it to `size`:
        it takes account of shards and padding.
    auto_reset
        ``True`` or ``"yes"``: go on to the next epoch by itself once an epoch has ended.
        ``False``, ``None`` or ``"no"``: raise `StopIteration` until `reset` or the next loop.
    last_batch_padded
        With `size`: whether the pipelines repeat samples at the end of an epoch, so that the next
        one begins with a full batch.
    last_batch_policy
        What to do with a last batch that has too few samples. With ``PARTIAL`` and a `sharding`,
        the rows of the last batch are shared out among the devices if they go up, and otherwise
        all devices get all of them. ``PARTIAL`` is not possible for arrays that have an axis for
        the devices, nor in several processes.
    prepare_first_batch
        Get the first batch right now, so that the pipelines start to work.
    sharding
        Sharding of the arrays, over their first axis only; or a dictionary with one for each
        output, by its name.
    pmap_compatible
        Whether arrays have an axis for the pipelines in front, ``(pipelines, batch, ...)``. By
        default, where there are several and no `sharding`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If arguments do not fit together or to the pipelines.
    UsageError
        If a pipeline has been run in another way, or gives no batch at all.
    ShapeError
        In a step, if the samples of an output have different shapes.
    """

    _state_methods = GrainMethods

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        auto_reset: bool | str | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        sharding: Sharding | Mapping[str, Sharding] | None = None,
        pmap_compatible: bool | None = None,
        *,
        devices: Sequence[jax.Device] | None = None,
    ) -> None:
        names = checked_output_map(output_map)
        check_devices(sharding, devices)
        made = as_list(pipelines)
        self._assembly = make_assembly(made, names, sharding, devices, pmap_compatible)
        if last_batch_policy is LastBatchPolicy.PARTIAL:
            self._check_partial(len(made), devices, pmap_compatible)
        super().__init__(
            made,
            size,
            reader_name,
            auto_reset,
            None,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
            output_map=names,
        )

    def _check_partial(
        self,
        pipelines: int,
        devices: Sequence[jax.Device] | None,
        pmap_compatible: bool | None,
    ) -> None:
        sharded = isinstance(self._assembly, (Sharded, Split))
        stacked = pmap_compatible or (
            pmap_compatible is None and (devices is not None or (pipelines > 1 and not sharded))
        )
        if stacked:
            raise ArgumentValueError(
                "`last_batch_policy`=LastBatchPolicy.PARTIAL cannot be had with arrays that have "
                "an axis for the devices: the devices may be left with different numbers of "
                "samples. Use FILL or DROP, or a `sharding` in place of `devices`."
            )
        if isinstance(self._assembly, (Sharded, Split)) and not self._assembly.is_local:
            raise ArgumentValueError(
                "`last_batch_policy`=LastBatchPolicy.PARTIAL cannot be had with a `sharding` over "
                "several processes: none of them has the last rows of the others. Use FILL or "
                "DROP; with `pad_last_batch=True` at the reader, FILL repeats samples only."
            )

    def _assemble(self, batches: list[PipelineBatch]) -> dict[str, jax.Array]:
        return assembled(self._assembly, self.output_map or (), batches, len(self._pipes))


def checked_output_map(output_map: Any) -> list[str]:
    """The names of the outputs."""
    names = [output_map] if isinstance(output_map, str) else list(output_map or ())
    if not names:
        raise ArgumentValueError(
            "`output_map` is empty; give a name for each output of the pipeline, such as "
            'output_map=["images", "labels"].'
        )
    return names


def check_devices(sharding: Any, devices: Sequence[jax.Device] | None) -> None:
    """Check that arrays are given one place."""
    if devices is None:
        return
    if sharding is not None:
        raise ArgumentValueError(
            "`sharding` and `devices` both say where arrays go; give one of them."
        )
    if isinstance(devices, jax.Device) or not all(isinstance(d, jax.Device) for d in devices):
        raise ArgumentTypeError(f"`devices` is {devices!r}; expected a list of `jax.Device`.")
    if not devices:
        raise ArgumentValueError("`devices` is empty; give at least one `jax.Device`.")
    if jax.process_count() > 1:
        raise UsageError(
            f"`devices` is for one process, and there are {jax.process_count()}; use `sharding`."
        )
