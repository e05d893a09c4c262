"""Doors to Ray Data: pipelines in `map_batches`, data sets as sources."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError, ShapeError, UsageError
from headrace.pipeline import Pipeline
from headrace.plugin.ray.columns import as_batch, as_column, checked_columns
from headrace.tensors import TensorListCPU
from headrace.tracebacks import public_methods


@public_methods
class PipelineMap:
    """A pipeline as the class that ``Dataset.map_batches`` calls; each actor keeps one warm.

    ``dataset.map_batches(PipelineMap, fn_constructor_args=(definition, ["image"]), batch_size=64,
    concurrency=4)``. External sources without a `source` are fed with the columns of their names;
    outputs become columns, beside those that no source takes.

    Parameters
    ----------
    definition
        Function that makes the pipeline, such as one decorated by `pipeline_def`. It is called in
        the actor.
    output_map
        Names of the columns that the outputs become.
    *arguments, **options
        Arguments of `definition`.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `definition` makes no pipeline, or `output_map` does not fit to it.
    UsageError
        If the pipeline has no external source to be fed.
    """

    def __init__(
        self,
        definition: Callable[..., Pipeline],
        output_map: Sequence[str],
        *arguments: Any,
        **options: Any,
    ) -> None:
        if not callable(definition):
            raise ArgumentTypeError(
                f"`definition` is {definition!r}; expected a function that makes the pipeline: a "
                "pipeline that is made already does not travel to actors."
            )
        self._names = checked_columns(output_map)
        pipeline = self._pipeline = definition(*arguments, **options)
        if not isinstance(pipeline, Pipeline):
            raise ArgumentTypeError(f"`definition` made {pipeline!r}; expected a pipeline.")
        if pipeline.num_outputs != len(self._names):
            raise ArgumentValueError(
                f"`output_map` has {len(self._names)} names, and the pipeline "
                f"{pipeline.num_outputs} outputs; give one name for each."
            )
        nodes = pipeline._definition.nodes
        fed = [n for n in nodes if n.input_queue is not None and not n.input_queue.has_source]
        self._inputs = [node.name for node in fed]
        if not fed or len(fed) < sum(n.input_queue is not None or n.schema.reader for n in nodes):
            raise UsageError(
                "Columns of a batch are fed to external sources without `source`, which have their "
                'names: fn.external_source(name="image"). The pipeline '
                + ("has none." if not fed else "has sources or readers of its own beside them.")
            )

    def __call__(self, batch: Mapping[str, Any]) -> dict[str, np.ndarray]:
        """Return the columns for one batch, which may be larger than the pipeline's."""
        missing = [name for name in self._inputs if name not in batch]
        if missing:
            raise ArgumentValueError(
                f"The batch has the columns {sorted(batch)} and lacks {missing}, which external "
                "sources of the pipeline are called."
            )
        given = {name: as_batch(batch[name], name) for name in self._inputs}
        size = len(next(iter(given.values())))
        found: dict[str, list[np.ndarray]] = {name: [] for name in self._names}
        step = self._pipeline.max_batch_size
        for begin in range(0, size, step):
            part = {name: values[begin : begin + step] for name, values in given.items()}
            outputs = self._pipeline.run(**part)
            for name, output in zip(self._names, outputs, strict=True):
                host = output if isinstance(output, TensorListCPU) else output.as_cpu()
                found[name] += [np.asarray(host.at(k)) for k in range(len(host))]
        kept = {k: v for k, v in batch.items() if k not in self._inputs and k not in found}
        made = {name: as_column(samples) for name, samples in found.items()}
        for name, values in made.items():
            if len(values) != size:
                raise ShapeError(
                    f"The output {name!r} has {len(values)} samples for {size} rows; outputs of a "
                    "branch have some of them only."
                )
        return {**kept, **made}


@public_methods
class DatasetSource:
    """A Ray `Dataset`, or what ``ray.train.get_dataset_shard`` returns, as an external source.

    ``fn.external_source(source=DatasetSource(dataset, ["image", "label"], 64), num_outputs=2,
    cycle="raise")``. Each epoch goes through the data once more. Rows are streamed: not all of them
    need to fit into memory.

    Parameters
    ----------
    dataset
        What has ``iter_batches``.
    columns
        Names of the columns that become outputs.
    batch_size
        Rows in a batch, not more than the pipeline's `batch_size`.
    drop_last
        Leave out a last batch that is not full.
    **options
        Further arguments of ``iter_batches``: ``prefetch_batches``,
        ``local_shuffle_buffer_size``, ``local_shuffle_seed``.
    """

    def __init__(
        self,
        dataset: Any,
        columns: str | Sequence[str],
        batch_size: int,
        *,
        drop_last: bool = False,
        **options: Any,
    ) -> None:
        if not hasattr(dataset, "iter_batches"):
            raise ArgumentTypeError(
                f"`dataset` is {dataset!r}; expected a `ray.data.Dataset`, or a shard of one."
            )
        self._dataset = dataset
        self._is_one = isinstance(columns, str)
        self._columns = checked_columns(columns)
        self._options = {"batch_size": batch_size, "drop_last": drop_last, **options}

    def __iter__(self) -> Iterator[Any]:
        """Go through the data once."""
        for batch in self._dataset.iter_batches(batch_format="numpy", **self._options):
            missing = [name for name in self._columns if name not in batch]
            if missing:
                raise ArgumentValueError(
                    f"The data set has the columns {sorted(batch)}, and not {missing}."
                )
            found = tuple([as_batch(batch[name], name) for name in self._columns])
            yield found[0] if self._is_one else found
