"""`DALIDataset`: a pipeline as a ``tf.data.Dataset``."""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from headrace.errors import ArgumentTypeError, ArgumentValueError, UsageError
from headrace.graph.on_cpu import asks_for_gpu
from headrace.graph.user_line import stack_level
from headrace.pipeline import Pipeline
from headrace.plugin.base_iterator import LastBatchPolicy
from headrace.plugin.tf.components import Component, make_component
from headrace.plugin.tf.session import Session
from headrace.plugin.tf.stepper import Stepper
from headrace.plugin.tf.structure import checked_dtypes, checked_shapes, leaves, rebuilt
from headrace.tensors.gpu.runtime import get_runtime, is_available, is_off

if TYPE_CHECKING:
    from headrace.graph.nodes import OpNode


class DALIDataset(tf.data.Dataset):  # type: ignore[misc]
    """The batches of a pipeline, as a dataset of TensorFlow.

    It is a ``tf.data.Dataset`` with all its methods, for loops, ``model.fit`` and
    ``tf.distribute``. Each iterator over it runs a pipeline of its own, made anew of the definition
    of `pipeline` and from its beginning, so it does not matter what else `pipeline` is used for.
    Tensors share the memory of the pipeline's outputs.

    Parameters
    ----------
    pipeline
        The pipeline that is defined, built or not.
    output_dtypes
        Element types of the outputs: one type or a tuple, and the elements are tuples; or
        dictionaries and nested tuples, and the elements have their structure. Outputs are assigned
        to them in the order in which they are written. `None`, for all or for one, stands for what
        the pipeline gives.
    output_shapes
        Shapes of the outputs in the same structure, the batch axis included. `None`, for all, for
        one or within one, stands for what the pipeline gives. Axes of extent 1 of the output may
        be left out. A ``tf.RaggedTensorSpec`` asks for a ragged tensor, for samples of different
        shapes.
    fail_on_device_mismatch
        Refuse outputs on the GPU. Datasets of TensorFlow are in the host's memory: where this is
        false, such outputs are copied there.
    batch_size
        Samples in a batch. That of `pipeline` is not used.
    num_threads
        Worker threads of each pipeline.
    device_id
        Number of the GPU; `None` for pipelines on the CPU; "auto" as for `Pipeline`, and where
        `pipeline` was made with that. Where no operator needs a GPU it has no effect.
    exec_separated
        Take `cpu_prefetch_queue_depth` and `gpu_prefetch_queue_depth`.
    exec_dynamic
        DALI's choice of executor; not together with `exec_separated`.
    prefetch_queue_depth
        Batches worked on ahead.
    cpu_prefetch_queue_depth, gpu_prefetch_queue_depth
        The same apart, with `exec_separated`.
    dtypes, shapes
        Deprecated names of `output_dtypes` and `output_shapes`, which may be lists.
    reader_name
        Name of the reader that says how long an epoch is. The dataset then ends with it, and the
        next iterator over the dataset goes on with the next epoch. Without it the dataset ends
        where an external source does, or never, and each iterator begins at the beginning.
    last_batch_policy
        With `reader_name`: what to do with a last batch that has too few samples.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If arguments do not fit together or to the pipeline.
    GpuNotAvailableError
        If the pipeline needs a GPU and there is none.
    UsageError
        If the pipeline has outputs on the GPU.
    """

    def __init__(
        self,
        pipeline: Pipeline,
        output_dtypes: Any = None,
        output_shapes: Any = None,
        fail_on_device_mismatch: bool = True,
        *,
        batch_size: int = 1,
        num_threads: int = 4,
        device_id: int | str | None = 0,
        exec_separated: bool = False,
        exec_dynamic: bool = False,
        prefetch_queue_depth: int = 2,
        cpu_prefetch_queue_depth: int = 2,
        gpu_prefetch_queue_depth: int = 2,
        dtypes: Any = None,
        shapes: Any = None,
        reader_name: str | None = None,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
    ) -> None:
        output_dtypes = _renamed("dtypes", dtypes, output_dtypes)
        output_shapes = _renamed("shapes", shapes, output_shapes)
        if not isinstance(pipeline, Pipeline):
            raise ArgumentTypeError(
                f"`pipeline` is a {type(pipeline).__name__}; expected a `headrace.Pipeline`. A "
                "function that `pipeline_def` has decorated makes one when it is called."
            )
        nodes = pipeline._definition.complete(pipeline.define_graph)
        sources = self._sources(pipeline, nodes)
        depth: int | dict[str, int] = prefetch_queue_depth
        if exec_separated:
            depth = {"cpu_size": cpu_prefetch_queue_depth, "gpu_size": gpu_prefetch_queue_depth}
        if pipeline._settings.device_given == "auto":
            device_id = "auto"
        gpu = device_id if needs_gpu(pipeline, nodes) else None
        on_cpu = is_off() or (gpu == "auto" and not is_available())
        settings = {
            "batch_size": batch_size,
            "num_threads": num_threads,
            "device_id": gpu,
            "prefetch_queue_depth": depth,
            "exec_dynamic": exec_dynamic or pipeline._settings.exec_dynamic,
        }
        edges = pipeline._definition.outputs or ()
        on_gpu = [k for k, edge in enumerate(edges) if edge.device == "gpu"]
        if on_gpu and not on_cpu and fail_on_device_mismatch:
            raise UsageError(
                f"TF device and DALI device mismatch. TF device: CPU, DALI device: GPU for output "
                f"{on_gpu[0]}. Datasets of TensorFlow are in the host's memory: return `.cpu()` of "
                "the output, or give `fail_on_device_mismatch=False`, which copies it."
            )
        if isinstance(gpu, int) and not on_cpu:
            get_runtime(gpu)  # where there is none, the error comes now

        def make_session() -> Session:
            return Session(
                Pipeline._copy_of(pipeline, sources, settings), reader_name, last_batch_policy
            )

        structure = checked_dtypes(output_dtypes, len(edges))
        wanted = checked_shapes(output_shapes, structure, len(edges))
        stepper = Stepper(make_session, goes_on=reader_name is not None)
        stepper.components = components_of(stepper, leaves(structure), wanted)
        length = tf.data.INFINITE_CARDINALITY
        if reader_name is not None:
            length = stepper.first_session().steps_of_each_epoch()
        elif any(node.input_queue is not None for node in nodes):
            length = None
        inner = _elements(stepper, structure, length)
        if not tf.executing_eagerly():  # the graph has the operations, and the dataset may be gone
            tf.compat.v1.get_default_graph().add_to_collection("headrace_steppers", stepper)
        self._inner = inner
        self._stepper = stepper
        super().__init__(inner._variant_tensor)

    def _sources(self, pipeline: Pipeline, nodes: list[OpNode]) -> dict[str, dict[str, Any]]:
        """By their names, what external sources are to have in place of their arguments."""
        fed = [n.name for n in nodes if n.input_queue is not None and not n.input_queue.has_source]
        if fed:
            raise ArgumentValueError(
                "DALIDataset got a pipeline containing External Source operator nodes without a "
                f"`source`: {', '.join(fed)}. Give datasets for them to "
                "`experimental.DALIDatasetWithInputs`."
            )
        return {}

    def _inputs(self) -> list[Any]:
        return [self._inner]

    def __iter__(self) -> Any:
        """An iterator over the batches.

        Raises
        ------
        UsageError
            In a process that was forked after the dataset's making: TensorFlow has no threads
            there, and would wait for them for ever.
        """
        self._stepper.check_process()
        return super().__iter__()

    @property
    def element_spec(self) -> Any:
        """Types and shapes of the elements."""
        return self._inner.element_spec


def _renamed(name: str, deprecated: Any, given: Any) -> Any:
    """The value of an argument that has an old name, too."""
    if deprecated is None:
        return given
    if given is not None:
        raise ArgumentValueError(
            f"Usage of `{name}` is deprecated in favor of `output_{name}`. Both arguments were "
            f"provided, but only `output_{name}` should be."
        )
    warnings.warn(
        f"Use of argument `{name}` is deprecated. Please use `output_{name}` instead, which should "
        "be a tuple or a single value.",
        Warning,
        stacklevel=stack_level(),
    )
    return tuple(deprecated) if isinstance(deprecated, list) else deprecated


def needs_gpu(pipeline: Pipeline, nodes: list[OpNode]) -> bool:
    """True if some operator runs on a GPU, or copies its output there."""
    return asks_for_gpu(nodes, list(pipeline._definition.outputs or ()))


def components_of(stepper: Stepper, dtypes: list[Any], shapes: list[Any]) -> list[Component]:
    """Make the components of the outputs; runs a first batch where their types or shapes are not
    given.
    """
    said = [
        isinstance(shape, tf.RaggedTensorSpec) or (dtype is not None and shape is not None)
        for dtype, shape in zip(dtypes, shapes, strict=True)
    ]
    example = [None] * len(said) if all(said) else stepper.first_session().example().outputs
    return [
        make_component(number, dtype, shape, batch)
        for number, (dtype, shape, batch) in enumerate(zip(dtypes, shapes, example, strict=True))
    ]


def _elements(stepper: Stepper, structure: Any, length: int | None) -> Any:
    """The dataset of elements, of which there are `length`, where that is known."""
    components = stepper.components
    types = [t for c in components for t in c.types]
    shapes = [s for c in components for s in c.shapes]
    call = stepper.weak_step()

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def step(state: Any, _: Any) -> Any:
        new, there_is, *arrays = tf.numpy_function(
            call, [state], [tf.uint8, tf.bool, *types], stateful=False
        )
        new.set_shape([None])
        there_is.set_shape([])
        return new, (there_is, *arrays)

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def is_there(there_is: Any, *arrays: Any) -> Any:
        return there_is

    @tf.autograph.experimental.do_not_convert  # type: ignore[untyped-decorator]
    def element(there_is: Any, *arrays: Any) -> Any:
        for array, shape in zip(arrays, shapes, strict=True):
            array.set_shape(shape)
        parts = iter(arrays)
        return rebuilt(structure, (c.value([next(parts) for _ in c.types]) for c in components))

    ticks = tf.data.Dataset.from_tensors(np.int8(0)).repeat()
    batches = ticks.scan(tf.zeros([0], tf.uint8), step).take_while(is_there)
    if length is not None:
        batches = batches.apply(tf.data.experimental.assert_cardinality(length))
    return batches.map(element)
