"""DALI's operations that give the next batch of a pipeline, for graphs of TensorFlow 1.

DALI's is compiled; this one is a ``tf.numpy_function`` in graphs. In eager execution a call is a
step, and outputs on a GPU stay there.
"""

from __future__ import annotations

import weakref
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import tensorflow as tf

from headrace.errors import ArgumentTypeError, ArgumentValueError, UsageError
from headrace.pipeline import Pipeline
from headrace.plugin.base_iterator import LastBatchPolicy
from headrace.plugin.tf import eager
from headrace.plugin.tf.components import (
    Component,
    SparseComponent,
    chosen_samples,
)
from headrace.plugin.tf.dataset import needs_gpu
from headrace.plugin.tf.session import Session
from headrace.tensors import TensorListGPU
from headrace.types.dtypes import storage_dtype

if TYPE_CHECKING:
    import numpy as np

    from headrace.plugin.base_iterator import PipelineBatch

_eager: weakref.WeakKeyDictionary[Pipeline, _Operation] = weakref.WeakKeyDictionary()
"""Sessions begun by eager calls."""


def DALIIterator() -> Callable[..., list[Any]]:  # noqa: N802
    """The function that makes operations which give the next batch: `DALIIteratorWrapper`."""
    return DALIIteratorWrapper


def DALIIteratorWrapper(  # noqa: N802
    pipeline: Pipeline | None = None,
    serialized_pipeline: bytes | None = None,
    sparse: Sequence[bool] = (),
    shapes: Sequence[Any] = (),
    dtypes: Sequence[tf.DType] = (),
    batch_size: int = -1,
    prefetch_queue_depth: int = 2,
    exec_dynamic: bool | None = None,
    *,
    num_threads: int = -1,
    device_id: int | None = -1,
    exec_separated: bool = False,
    cpu_prefetch_queue_depth: int = 2,
    gpu_prefetch_queue_depth: int = 2,
    enable_memory_stats: bool = False,
) -> list[Any]:
    """The next batch of a pipeline.

    In a graph, an operation that gives the next batch whenever it is evaluated: those of a copy of
    the pipeline, from its beginning. Batches of outputs on a GPU are copied to the host there.
    In eager execution, the next batch; the first call begins a copy of the pipeline, and calls with
    the same `pipeline` go on with it. Outputs on a GPU are then tensors on it, if TensorFlow has
    it. `DALIDataset` and `DALIGenericIterator` know more: they have epochs.

    Parameters
    ----------
    pipeline
        The pipeline that is defined, built or not.
    serialized_pipeline
        In its place, what `serialize_pipeline` returned. Not in eager execution.
    sparse
        For each output, whether it is a sparse tensor, which has all elements of all samples;
        those after the end of the list are dense.
    shapes
        Shapes of the outputs, the batch axis included; ``()`` or `None` for any. Sparse ones are
        not looked at.
    dtypes
        Element types of the outputs; if there are none, what the pipeline gives. Values of another
        type of the same size are converted, with a warning if one of the two is a floating-point
        type; DALI's operation hands over their bits.
    batch_size
        Samples in a batch; by default what the first of `shapes` says, or else the pipeline.
    prefetch_queue_depth
        Batches worked on ahead.
    exec_dynamic
        DALI's choice of executor; not together with `exec_separated`.
    num_threads, device_id
        Those of the pipeline by default.
    exec_separated
        Take `cpu_prefetch_queue_depth` and `gpu_prefetch_queue_depth`.
    cpu_prefetch_queue_depth, gpu_prefetch_queue_depth
        The same apart, with `exec_separated`.
    enable_memory_stats
        See `Pipeline`.

    Returns
    -------
    A list of tensors, dense or sparse, one for each output.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If arguments do not fit together or to the pipeline.
    UsageError
        If a serialized pipeline is given in eager execution.
    tf.errors.OutOfRangeError
        When there is no more data; in a graph, when the operation is evaluated.
    """
    if (pipeline is None) == (serialized_pipeline is None):
        raise ArgumentValueError(
            "`DALIIteratorWrapper` needs one of `pipeline` and `serialized_pipeline`, got "
            f"{'none' if pipeline is None else 'both'}."
        )
    in_steps = tf.executing_eagerly()
    known = _eager.get(pipeline) if in_steps and pipeline is not None else None
    if in_steps and pipeline is None:
        raise UsageError(
            "In eager execution, each call with a `serialized_pipeline` would begin anew: make "
            "`pipeline = Pipeline.deserialize(serialized_pipeline)` once, and pass `pipeline`."
        )
    if known is None:
        if serialized_pipeline is not None:
            pipeline = Pipeline.deserialize(serialized_pipeline)
        if not isinstance(pipeline, Pipeline):
            raise ArgumentTypeError(
                f"`pipeline` is a {type(pipeline).__name__}; expected a `headrace.Pipeline`."
            )
        depth: int | dict[str, int] = prefetch_queue_depth
        if exec_separated:
            depth = {"cpu_size": cpu_prefetch_queue_depth, "gpu_size": gpu_prefetch_queue_depth}
        given: dict[str, Any] = {
            "batch_size": _batch_size(batch_size, shapes, pipeline),
            "prefetch_queue_depth": depth,
            "enable_memory_stats": enable_memory_stats,
        }
        given |= {} if exec_dynamic is None else {"exec_dynamic": exec_dynamic}
        given |= {} if num_threads == -1 else {"num_threads": num_threads}
        given |= {} if device_id == -1 else {"device_id": device_id}
        session = _session(pipeline, given)
        known = _Operation(session, _made(session, sparse, shapes, dtypes))
        if in_steps:
            _eager[pipeline] = known
    return known.step() if in_steps else known.evaluated()


def _session(pipeline: Pipeline, settings: dict[str, Any]) -> Session:
    """Make a session that runs a copy of `pipeline`."""
    nodes = pipeline._definition.complete(pipeline.define_graph)
    if not needs_gpu(pipeline, nodes):
        settings = {**settings, "device_id": None}
    return Session(Pipeline._copy_of(pipeline, {}, settings), None, LastBatchPolicy.FILL)


def DALIRawIterator() -> Callable[..., list[Any]]:  # noqa: N802
    """The function under `DALIIteratorWrapper`, which takes and gives single tensors.

    Returns
    -------
    A function with the arguments of `DALIIteratorWrapper`, whose result has three tensors in place
    of a sparse one: the places of its elements, its values, its shape. `dtypes` and `shapes` have
    three entries there, too.
    """
    return _raw


def _raw(
    *,
    sparse: Sequence[bool] = (),
    shapes: Sequence[Any] = (),
    dtypes: Sequence[tf.DType] = (),
    **arguments: Any,
) -> list[Any]:
    made = DALIIteratorWrapper(
        sparse=sparse,
        shapes=_values_only(shapes, sparse),
        dtypes=_values_only(dtypes, sparse),
        **arguments,
    )
    return [
        part
        for tensor in made
        for part in (
            (tensor.indices, tensor.values, tensor.dense_shape)
            if isinstance(tensor, tf.SparseTensor)
            else (tensor,)
        )
    ]


def _values_only(entries: Sequence[Any], sparse: Sequence[bool]) -> list[Any]:
    """One entry for each output: of the three that a sparse one has, that for its values."""
    left = list(entries)
    found = []
    for is_sparse in sparse if left else ():
        found.append(left[1 if is_sparse else 0])
        del left[: 3 if is_sparse else 1]
    return found + left


def _batch_size(given: int, shapes: Sequence[Any], pipeline: Pipeline) -> int:
    if given != -1:
        return given
    first = tf.TensorShape(shapes[0] if shapes else None)
    known = first[0] if first.rank else None
    return pipeline.max_batch_size if known is None else int(known)


def _made(
    session: Session, sparse: Sequence[bool], shapes: Sequence[Any], dtypes: Sequence[tf.DType]
) -> list[Component]:
    """Make the components of the outputs."""
    pipeline = session._pipes[0]
    count = pipeline.num_outputs
    for name, given in (("shapes", shapes), ("dtypes", dtypes)):
        if given and len(given) != count:
            raise ArgumentValueError(
                f"`{name}` has {len(given)} elements, {given}, and the pipeline {count} outputs; "
                "give one for each."
            )
    if len(sparse) > count:
        raise ArgumentValueError(
            f"`sparse` has {len(sparse)} elements, and the pipeline {count} outputs."
        )
    if not dtypes:
        dtypes = [tf.as_dtype(storage_dtype(batch.dtype)) for batch in session.example().outputs]
    found = []
    for k, dtype in enumerate(dtypes):
        shape = tf.TensorShape((shapes[k] or None) if shapes else None)
        is_sparse = k < len(sparse) and sparse[k]
        found.append(
            SparseComponent(k, dtype, converts=True)
            if is_sparse
            else Component(k, dtype, shape, converts=True)
        )
    return found


class _Operation:
    """Gives the batches of a session, which nothing else uses."""

    def __init__(self, session: Session, components: list[Component]) -> None:
        self._session = session
        self._components = components

    def evaluated(self) -> list[Any]:
        """Tensors of a graph, which keeps the session."""
        with tf.device("/CPU:0"):
            types = [t for c in self._components for t in c.types]
            tensors = tf.numpy_function(self._arrays, [], types, stateful=True)
        parts = iter(tensors if isinstance(tensors, (list, tuple)) else [tensors])
        return [self._packed(component, parts) for component in self._components]

    def _packed(self, component: Component, parts: Any) -> Any:
        mine = [next(parts) for _ in component.types]
        for part, shape in zip(mine, component.shapes, strict=True):
            part.set_shape(shape)
        return component.value(mine)

    def _arrays(self) -> list[np.ndarray]:
        batch = self._next()
        return [
            array
            for component in self._components
            for array in component.arrays(batch.outputs[component.number], batch.kept)
        ]

    def _next(self) -> PipelineBatch:
        with self._session.lock:
            found: PipelineBatch = next(self._session)
        return found

    def step(self) -> list[Any]:
        """The next batch as eager tensors."""
        eager.take_back()
        try:
            batch = self._next()
        except StopIteration:
            raise tf.errors.OutOfRangeError(
                None, None, "The pipeline of this `DALIIterator` has no more data."
            ) from None
        return [self._tensor(component, batch) for component in self._components]

    def _tensor(self, component: Component, batch: PipelineBatch) -> Any:
        output = batch.outputs[component.number]
        if (
            isinstance(output, TensorListGPU)
            and not isinstance(component, SparseComponent)
            and component.has_type_of(output)
        ):
            chosen = chosen_samples(output, batch.kept)
            if isinstance(chosen, TensorListGPU) and eager.has_gpu(chosen.device_id()):
                return eager.from_gpu(component.on_gpu(chosen))
        arrays = component.arrays(output, batch.kept)
        return component.value([eager.from_host(array) for array in arrays])


def serialize_pipeline(pipeline: Pipeline) -> bytes:
    """The definition of `pipeline` as bytes: `Pipeline.serialize`, under DALI's name."""
    return pipeline.serialize()


def dataset_options() -> Any:
    """Options for ``Dataset.with_options`` that DALI gives its datasets.

    TensorFlow then neither rewrites the transformations after a dataset nor tunes its buffers and
    threads. `DALIDataset` does not need them.

    Returns
    -------
    A ``tf.data.Options`` with default optimizations and tuning off.
    """
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return options
