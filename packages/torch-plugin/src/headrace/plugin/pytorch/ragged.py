"""An iterator for outputs whose samples differ in shape."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, ClassVar

from headrace.errors import ArgumentValueError, IteratorArgumentError
from headrace.plugin.base_iterator import LastBatchPolicy, PipelineBatch, _DaliBaseIterator
from headrace.plugin.pytorch.convert import separate, to_dense, to_list
from headrace.plugin.pytorch.placement import place_outputs
from headrace.plugin.pytorch.sparse import to_sparse_coo

if TYPE_CHECKING:
    from collections.abc import Sequence

    import torch

    from headrace.pipeline import Pipeline
    from headrace.plugin.pytorch.convert import Batch
    from headrace.plugin.pytorch.placement import Device


class DALIRaggedIterator(_DaliBaseIterator):
    """Iterates over batches whose samples may differ in shape.

    Like `DALIGenericIterator`, but each output comes in the form that `output_types` says:

    * `DENSE_TAG`, "dense": one tensor; all samples must have one shape;
    * `SPARSE_LIST_TAG`, "sparse_list": a list with one tensor for each sample;
    * `SPARSE_COO_TAG`, "sparse_coo": one sparse tensor in coordinate format, as large as the
      largest sample, which stores all elements of all samples.

    Parameters
    ----------
    pipelines, output_map, size, reader_name, auto_reset, fill_last_batch, dynamic_shape
        See `DALIGenericIterator`.
    output_types
        A tag for each output; `None` for dense outputs only.
    last_batch_padded, last_batch_policy, prepare_first_batch, device, pin_memory
        See `DALIGenericIterator`.

    Raises
    ------
    ArgumentValueError
        If a tag is unknown, there are not as many tags as outputs, or as `DALIGenericIterator`.
    """

    DENSE_TAG: ClassVar = "dense"
    SPARSE_LIST_TAG: ClassVar = "sparse_list"
    SPARSE_COO_TAG: ClassVar = "sparse_coo"

    def __init__(
        self,
        pipelines: Pipeline | Sequence[Pipeline],
        output_map: Sequence[str],
        size: int = -1,
        reader_name: str | None = None,
        output_types: Sequence[str] | None = None,
        auto_reset: bool | str | None = False,
        fill_last_batch: bool | None = None,
        dynamic_shape: bool | None = False,
        last_batch_padded: bool = False,
        last_batch_policy: LastBatchPolicy = LastBatchPolicy.FILL,
        prepare_first_batch: bool = True,
        *,
        device: Device | Sequence[Device] | None = None,
        pin_memory: bool = False,
    ) -> None:
        names = [output_map] if isinstance(output_map, str) else output_map
        self._output_types = self._checked_types(output_types, len(names))
        self._pins = place_outputs(pipelines, device, pin_memory)
        super().__init__(
            pipelines,
            size,
            reader_name,
            auto_reset,
            fill_last_batch,
            last_batch_padded,
            last_batch_policy,
            prepare_first_batch,
            output_map=output_map,
        )

    def _checked_types(self, output_types: Sequence[str] | None, outputs: int) -> list[str]:
        if output_types is None:
            return [self.DENSE_TAG] * outputs
        tags = (self.DENSE_TAG, self.SPARSE_LIST_TAG, self.SPARSE_COO_TAG)
        for tag in output_types:
            if tag not in tags:
                raise IteratorArgumentError(
                    f"`output_types` contains {tag!r}. Only DENSE_TAG, SPARSE_LIST_TAG and "
                    f"SPARSE_COO_TAG are allowed: {', '.join(map(repr, tags))}."
                )
        if len(output_types) != outputs:
            raise ArgumentValueError(
                f"`output_types` has {len(output_types)} tags for the {outputs} names of "
                "`output_map`; give one for each."
            )
        return list(output_types)

    def _assemble(
        self, batches: list[PipelineBatch]
    ) -> list[dict[str, torch.Tensor | list[torch.Tensor]]]:
        names = self.output_map or ()
        return [
            separate(
                {
                    name: self._convert(output, batch.kept, name, tag)
                    for name, tag, output in zip(
                        names, self._output_types, batch.outputs, strict=True
                    )
                },
                pins=self._pins,
            )
            for batch in batches
        ]

    def _convert(self, output: Batch, kept: int | list[int], name: str, tag: str) -> Any:
        if tag == self.SPARSE_LIST_TAG:
            return to_list(output, kept)
        if tag == self.SPARSE_COO_TAG:
            return to_sparse_coo(output, kept)
        return to_dense(output, kept, name)
