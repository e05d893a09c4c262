"""Datasets of pipelines whose external sources are other datasets."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from headrace.errors import ArgumentTypeError, ArgumentValueError, NotYetSupportedError
from headrace.plugin.tf.dataset import DALIDataset

if TYPE_CHECKING:
    from headrace.graph.nodes import OpNode
    from headrace.pipeline import Pipeline

_MAPS = (
    "`input_datasets` must be a dictionary that maps input names (the `name` specified for an "
    "external source in the pipeline) to input datasets objects (`tf.data.Dataset`) or "
    "`experimental.Input` wrapper objects"
)
_THREADS = 2
"""Threads of an input, where its options say nothing. They are its own: those that all datasets
share may all be waiting for pipelines, which wait for their inputs."""


class Input:
    """A dataset that feeds an external source, and how.

    Parameters
    ----------
    dataset
        Its elements are single tensors: numbers, or strings, whose bytes the samples then have.
    layout
        Layout of the samples; that of the external source if `None`.
    batch
        Whether elements are batches, dense or ragged, and not samples; as the external source says
        if `None`.

    Raises
    ------
    ArgumentTypeError
        If `dataset` is none.
    """

    def __init__(
        self, dataset: Any, *, layout: str | None = None, batch: bool | None = False
    ) -> None:
        if not isinstance(dataset, tf.data.Dataset):
            raise ArgumentTypeError(
                "The inputs specified to DALIDataset must be instances of type `tf.data.Dataset` "
                f"got: `{dataset}` of type: {type(dataset).__name__} instead."
            )
        self.dataset = dataset
        self.layout = layout
        self.batch = batch


class DALIDatasetWithInputs(DALIDataset):
    """The batches of a pipeline whose external sources other datasets feed.

    Each iterator over it has iterators over the inputs. It ends when one of them does; samples that
    do not fill a batch are dropped then. Checkpoints of its iterators cannot be made.

    Parameters
    ----------
    pipeline
        The pipeline. External sources with a `source` run as ever, parallel ones as well.
    *args, **kwargs
        See `DALIDataset`.
    input_datasets
        By the names of the external sources without a `source`, their datasets: of single
        samples, or an `Input`, which may be one of batches.

    Raises
    ------
    ArgumentTypeError
        If `input_datasets` is no dictionary of datasets by names.
    ArgumentValueError
        If these names are not those of the external sources.
    NotYetSupportedError
        If the pipeline has ``enable_checkpointing=True``.
    """

    def __init__(
        self, pipeline: Pipeline, *args: Any, input_datasets: Any = None, **kwargs: Any
    ) -> None:
        self._inputs_by_name = _checked(input_datasets)
        super().__init__(pipeline, *args, **kwargs)

    def _inputs(self) -> list[Any]:
        return [*super()._inputs(), *(given.dataset for given in self._inputs_by_name.values())]

    def _sources(self, pipeline: Pipeline, nodes: list[OpNode]) -> dict[str, dict[str, Any]]:
        given = self._inputs_by_name
        if given and pipeline._settings.enable_checkpointing:
            raise NotYetSupportedError(
                "Checkpointing is not supported for a DALI dataset with inputs: make the pipeline "
                "without `enable_checkpointing`."
            )
        sources = [node for node in nodes if node.input_queue is not None]
        fed = {node.name: node for node in sources if not node.input_queue.has_source}
        unnamed = [node.user_line for node in fed.values() if not node.explicit_name]
        if unnamed:
            raise ArgumentValueError(
                "Found placeholder External Source node (without `source` argument) in the "
                f"pipeline that was not named (no `name` argument set), created at {unnamed[0]}."
            )
        for node in sources:
            if node.name in given and node.input_queue.has_source:
                raise ArgumentValueError(
                    "Double specification of External Source input is not allowed: "
                    f'"{node.name}", created at {node.user_line}, has a `source`, and '
                    "`input_datasets` has a dataset for it."
                )
        unknown = [name for name in given if name not in fed]
        if unknown:
            raise ArgumentValueError(
                "Did not find an External Source placeholder node with "
                f"name={unknown[0]!r} in the provided pipeline - required by the name specified in "
                f"the `input_datasets`. Names of available placeholder nodes are: {list(fed)}."
            )
        missing = [name for name in fed if name not in given]
        if missing:
            raise ArgumentValueError(
                "Found External Source nodes in the Pipeline, that were not assigned any inputs. "
                f"Nodes without inputs: {missing}. Nodes that were assigned inputs: {list(given)}."
            )
        return {name: _arguments(node, given[name]) for name, node in fed.items()}


def _checked(inputs: Any) -> dict[str, Input]:
    """The inputs by their names."""
    if inputs is None:
        return {}
    if not isinstance(inputs, Mapping):
        raise ArgumentTypeError(f"{_MAPS}, got: `{inputs}` of type: {type(inputs).__name__}.")
    found = {}
    for name, value in inputs.items():
        if not isinstance(name, str):
            raise ArgumentTypeError(
                f"{_MAPS}. Expected the keys to be of type `str`, got: `{name}` of type: "
                f"{type(name).__name__}."
            )
        if not isinstance(value, (tf.data.Dataset, Input)):
            raise ArgumentTypeError(f"{_MAPS}, got: `{value}` of type: {type(value).__name__}.")
        found[name] = value if isinstance(value, Input) else Input(value)
    return found


def _arguments(node: OpNode, given: Input) -> dict[str, Any]:
    """The arguments of an external source that is fed by a dataset."""
    layout = node.args["layout"]
    if None not in (layout, given.layout) and layout != given.layout:
        raise ArgumentValueError(
            f'The input of the external source "{node.name}" has the layout {given.layout!r}, and '
            f"the external source {layout!r}; leave one of them out."
        )
    batch = node.args["batch"] if given.batch is None else given.batch
    return {
        "source": _Source(node.name, given.dataset, batch),
        "batch": batch,
        "layout": given.layout or layout,
        "no_copy": True,  # tensors do not change
        "repeat_last": False,
        "blocking": False,
    }


class _Source:
    """An iterable of what a dataset has, as arrays."""

    def __init__(self, name: str, dataset: Any, batch: bool) -> None:
        self._name = name
        self._batch = batch
        options = dataset.options()
        if options.threading.private_threadpool_size is None:
            mine = tf.data.Options()
            mine.threading.private_threadpool_size = _THREADS
            dataset = dataset.with_options(mine)
        self._dataset = dataset

    def __iter__(self) -> Iterator[Any]:
        with tf.device("/CPU:0"):
            iterator = iter(self._dataset)
        return map(self._arrays, iterator)

    def _arrays(self, element: Any) -> Any:
        if isinstance(element, tuple) and len(element) == 1:
            (element,) = element
        if isinstance(element, tf.RaggedTensor) and self._batch:
            return [self._array(sample) for sample in element]
        if not tf.is_tensor(element) or isinstance(element, (tf.RaggedTensor, tf.SparseTensor)):
            raise ArgumentTypeError(
                f'The dataset for the external source "{self._name}" gave a '
                f"{type(element).__name__}; only examples of 1 element, a tensor, are supported. "
                "`Dataset.map` can choose one."
            )
        if element.dtype == tf.string and self._batch:
            return [np.frombuffer(each, np.uint8) for each in element.numpy().ravel()]
        return self._array(element)

    def _array(self, tensor: Any) -> np.ndarray:
        if isinstance(tensor, tf.RaggedTensor):
            tensor = tensor.to_tensor()
        if tensor.dtype == tf.string:
            return np.frombuffer(tensor.numpy(), np.uint8)
        return np.asarray(memoryview(tensor))
