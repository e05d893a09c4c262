"""`segmentation.select_masks`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.operators.support.argument_types import BoolArg
from headrace.operators.support.operator import SampleContext, SampleOperator, operator
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.types import DALIDataType


@operator(
    "segmentation.select_masks",
    inputs=(
        Input("mask_ids", "Masks to select, 1-D.", dtypes=(DALIDataType.INT32,)),
        Input(
            "polygons",
            "A row for each polygon, ``(polygons, 3)``: number of its mask, its first vertex, and "
            "the one after its last.",
            dtypes=(DALIDataType.INT32,),
        ),
        Input("vertices", "Vertices, ``(vertices, coordinates)``, of any type."),
    ),
    args=(
        Arg(
            "reindex_masks",
            BoolArg,
            False,
            "Whether selected masks get new numbers: their positions in `mask_ids`.",
        ),
    ),
    num_outputs=2,
    output_docs=(
        "The selected polygons, in the order of `mask_ids`.",
        "Their vertices, one polygon after the other.",
    ),
    devices=("cpu",),
)
class SelectMasks(SampleOperator):
    """Selects polygons by the numbers of their masks, and the vertices that they have.

    A mask stands for one polygon: of several with the same number, the last one is selected.

    Examples
    --------
    >>> images, boxes, labels, polygons, vertices = fn.readers.coco(..., polygon_masks=True)
    >>> polygons, vertices = fn.segmentation.select_masks(picked, polygons, vertices)
    """

    def infer(self, mask_ids: Spec, polygons: Spec, vertices: Spec) -> tuple[Spec, Spec]:
        specs = (("mask_ids", mask_ids, 1), ("polygons", polygons, 2), ("vertices", vertices, 2))
        for name, spec, ndim in specs:
            if spec.ndim not in (ndim, None):
                raise ShapeError(f"`{name}` must have {ndim} dimensions, got {spec.ndim}.")
        return polygons._replace(layout=""), vertices._replace(layout="")

    def cpu(
        self, c: SampleContext, mask_ids: np.ndarray, polygons: np.ndarray, vertices: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        if polygons.shape[1] != 3:
            raise ShapeError(
                "``polygons`` is expected to contain 2D tensors with 3 columns: ``mask_id, "
                f"start_idx, end_idx``. Got {polygons.shape[1]} columns."
            )
        selected = mask_ids.tolist()
        if len(set(selected)) < len(selected):
            raise ArgumentValueError(f"`mask_ids` must differ from one another, got {selected}.")
        ranges = {mask: (begin, end) for mask, begin, end in polygons.tolist()}
        found = np.empty((len(selected), 3), np.int32)
        pieces, total = [vertices[:0]], 0
        for k, mask in enumerate(selected):
            if mask not in ranges:
                raise ArgumentValueError(
                    f"Selected mask_id {mask} is not present in the input. `mask_ids` can be "
                    f"{sorted(ranges)}, which are the masks of `polygons`."
                )
            begin, end = ranges[mask]
            if not 0 <= begin <= end <= len(vertices):
                raise ArgumentValueError(
                    f"Vertex index range for mask id {mask} is out of bounds. Expected to be "
                    f"within the range of available vertices [0, {len(vertices)}), got "
                    f"[{begin}, {end})."
                )
            pieces.append(vertices[begin:end])
            found[k] = k if self.args.reindex_masks else mask, total, total + end - begin
            total += end - begin
        kept = c.empty((total, vertices.shape[1]), vertices.dtype, 1)
        np.concatenate(pieces, out=kept)
        out = c.empty(found.shape, np.int32)
        np.copyto(out, found)
        return out, kept
