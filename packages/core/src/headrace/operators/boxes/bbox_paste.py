"""`bbox_paste`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.cpu import bbox_paste as _cpu
from headrace.operators.support.argument_types import BoolArg, FloatArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.operator import ChunkContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples, repeated
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tensors.gpu.batch import volumes
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType

PASTE_ARGS = tuple(
    Arg(
        f"paste_{axis}",
        FloatArg,
        0.5,
        f"Where the image is on the canvas, from 0 ({first}) to 1 ({last}).",
        per_sample=True,
    )
    for axis, first, last in (("x", "left", "right"), ("y", "top", "bottom"))
)
BOXES = Input(
    "boxes",
    "Boxes, four numbers each, as shares of the image's extents: any shape.",
    dtypes=(DALIDataType.FLOAT,),
)
LTRB = Arg(
    "ltrb",
    BoolArg,
    False,
    "Whether a box is left, top, right and bottom; else left, top, width and height.",
)


def check_boxes(shapes: np.ndarray) -> None:
    """Raise if samples of these shapes, ``(samples, ndim)``, have no whole number of boxes."""
    sizes = volumes(shapes)
    if (sizes % 4).any():
        raise ShapeError(
            "Bounding box tensor size must be a multiple of 4, got "
            f"{int(sizes[sizes % 4 > 0][0])} numbers."
        )


@operator(
    "bbox_paste",
    inputs=BOXES,
    args=(
        Arg(
            "ratio",
            FloatArg,
            REQUIRED,
            "Extents of the canvas, in those of the image.",
            per_sample=True,
        ),
        *PASTE_ARGS,
        LTRB,
    ),
    output_docs=("The boxes as shares of the canvas' extents.",),
    devices=("cpu",),
)
class BBoxPaste(SampleOperator):
    """Moves boxes along with an image that `paste` puts on a larger canvas.

    Examples
    --------
    >>> images = fn.paste(images, ratio=ratio, fill_value=127)
    >>> boxes = fn.bbox_paste(boxes, ratio=ratio)
    """

    def infer(self, boxes: Spec) -> Spec:
        return boxes._replace(layout="")

    def plan(self, c: PlanContext, boxes: Samples) -> Planned:
        check_boxes(boxes.shapes)
        ratio = numbers_of(c, "ratio", np.float32)
        with np.errstate(divide="ignore", invalid="ignore"):
            margin = np.float32(1) - np.float32(1) / ratio
            # As in DALI, an image that would begin after the last place begins there.
            offsets = [
                np.minimum(numbers_of(c, name, np.float32) * margin, margin)
                for name in ("paste_x", "paste_y")
            ]
        shapes = repeated(boxes.shapes, c.size)
        return Planned(shapes, (ratio, *offsets))

    chunked = True

    def cpu_chunk(self, c: ChunkContext, boxes: Rows) -> Rows:
        out = c.out()
        assert out.flat is not None
        counts = boxes.sizes // 4
        _cpu.paste_boxes(
            boxes.addresses,
            counts,
            *[np.asarray(column, np.float32) for column in c.table],
            self.args.ltrb,
            out.flat,
            out.begins,
        )
        return out
