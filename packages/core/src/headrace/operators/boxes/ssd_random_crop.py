"""`ssd_random_crop`, which `random_bbox_crop` and `slice` have taken the place of."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ShapeError
from headrace.operators.boxes.random_bbox_crop import RandomBBoxCrop
from headrace.operators.support.argument_types import IntArg
from headrace.operators.support.operator import SampleContext, SampleOperator, operator
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.rows import Rows, pack_rows
from headrace.types import DALIDataType

_ARGUMENTS = {
    "thresholds": (0.0, 0.1, 0.3, 0.5, 0.7, 0.9),
    "scaling": (0.3, 1.0),
    "aspect_ratio": (0.5, 2.0),
}


@operator(
    "ssd_random_crop",
    inputs=(
        Input("images", "Images.", layouts=("HWC",), dtypes=(DALIDataType.UINT8,)),
        Input(
            "boxes",
            "Left, top, right and bottom of boxes, from 0 to 1: shape (boxes, 4).",
            dtypes=(DALIDataType.FLOAT,),
        ),
        Input("labels", "A label for each box.", dtypes=(DALIDataType.INT32,)),
    ),
    args=(Arg("num_attempts", IntArg, 1, "Number of windows that are tried with a threshold."),),
    num_outputs=3,
    output_docs=("The windows of the images.", "The boxes that stay.", "Their labels."),
    random=True,
    hidden=True,
    deprecated="random_bbox_crop",
    class_name="SSDRandomCrop",
    dynamic=False,
    devices=("cpu",),
)
class SSDRandomCrop(SampleOperator):
    """Crops images as SSD detectors are trained with.

    Windows have extents of 0.3 to 1 and ratios of 0.5 to 2; all boxes must reach one of the
    thresholds 0, 0.1, 0.3, 0.5, 0.7 and 0.9, or nothing is cropped.
    """

    def infer(self, images: Spec, boxes: Spec, labels: Spec) -> tuple[Spec, Spec, Spec]:
        defaults = {arg.name: arg.default for arg in RandomBBoxCrop.schema.args.values()}
        given = {**defaults, **_ARGUMENTS, "num_attempts": self.args.num_attempts}
        self._windows = RandomBBoxCrop(given)
        self._windows.infer(boxes, labels)
        return images, boxes, labels

    def cpu(
        self, c: SampleContext, image: np.ndarray, boxes: np.ndarray, labels: np.ndarray
    ) -> tuple[np.ndarray, ...]:
        if boxes.shape[1:] != (4,):
            raise ShapeError(f"Boxes must have the shape (boxes, 4), got {boxes.shape}.")
        if not len(boxes):
            return image, boxes, labels
        found = self._windows.cropped(c.alone(), Rows([boxes]), Rows([labels]), _own_memory)
        low, size, kept_boxes, kept_labels = [rows[0] for rows in found]
        extents = np.array(image.shape[1::-1])
        x, y = np.rint(low * extents).astype(int).tolist()
        right, bottom = np.rint((low + size) * extents).astype(int).tolist()
        return image[y:bottom, x:right], kept_boxes, kept_labels


def _own_memory(shapes: np.ndarray, dtype: Any, output: int) -> Rows:
    return pack_rows(shapes, np.dtype(dtype), np.empty)
