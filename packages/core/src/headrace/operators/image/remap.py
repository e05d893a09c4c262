"""`experimental.remap`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentChoiceError, ShapeError
from headrace.kernels.cpu import remap as _cpu
from headrace.kernels.gpu import remap as _gpu
from headrace.operators.support.argument_types import InterpTypeArg, StringArg
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import Arg, Input, Spec, data_types
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType, DALIInterpType

_INTERPOLATIONS = {
    DALIInterpType.INTERP_NN: "nearest",
    DALIInterpType.INTERP_LINEAR: "linear",
    DALIInterpType.INTERP_CUBIC: "cubic",
}
_SHIFTS = {"corner": -0.5, "center": 0.0}
_MAPS = (
    "in the image of each pixel of the output: ``(height, width)`` or ``(height, width, 1)``, for "
    "each frame where frames (F) are in front."
)


@operator(
    "experimental.remap",
    inputs=(
        Input(
            "images",
            "Images or sequences of them.",
            layouts=("HWC", "FHWC"),
            dtypes=data_types("UINT8 INT16 UINT16 FLOAT"),
        ),
        Input("mapx", f"The column {_MAPS}", dtypes=(DALIDataType.FLOAT,)),
        Input("mapy", f"The row {_MAPS}", dtypes=(DALIDataType.FLOAT,)),
    ),
    args=(
        Arg(
            "interp",
            InterpTypeArg,
            DALIInterpType.INTERP_LINEAR,
            "INTERP_NN, INTERP_LINEAR or INTERP_CUBIC.",
        ),
        Arg(
            "pixel_origin",
            StringArg,
            "corner",
            'Where coordinates are (0, 0): in the "corner" of the first pixel, or in its "center", '
            "as in OpenCV.",
        ),
    ),
    output_docs=("The images, in the layout of the input.",),
    frames=True,
)
class Remap(SampleOperator):
    """Takes each pixel from where two maps say; what is outside of the image is 0.

    Maps are as high and wide as the images.

    Examples
    --------
    >>> straight = fn.experimental.remap(images, mapx, mapy, pixel_origin="center")
    """

    keeps_shape = True

    def check_constants(self) -> None:
        args = self.args
        if args.pixel_origin not in _SHIFTS:
            raise ArgumentChoiceError(
                f'Undefined pixel_origin parameter: "{args.pixel_origin}". It may be "corner" or '
                '"center".'
            )
        if args.interp not in _INTERPOLATIONS:
            raise ArgumentChoiceError(
                f"`interp` must be INTERP_NN, INTERP_LINEAR or INTERP_CUBIC, got "
                f"{args.interp.name}."
            )

    def infer(self, images: Spec, mapx: Spec, mapy: Spec) -> Spec:
        self._how = _INTERPOLATIONS[self.args.interp], _SHIFTS[self.args.pixel_origin]
        return images

    def plan(self, c: PlanContext, images: Samples, mapx: Samples, mapy: Samples) -> Planned:
        shapes = repeated(images.shapes, c.size)
        for name, found in (("mapx", mapx), ("mapy", mapy)):
            places = repeated(found.shapes, c.size)
            extents = places[:, :2]
            flat = places.shape[1] == 2 or (places.shape[1] == 3 and (places[:, 2] == 1).all())
            if not flat or (extents != shapes[:, :2]).any():
                wrong = (extents != shapes[:, :2]).any(axis=1).argmax() if flat else 0
                height, width = shapes[wrong, :2]
                raise ShapeError(
                    f"Output and maps shapes do not match: `{name}` has the shape "
                    f"{tuple(places[wrong].tolist())} for an image of {height} x {width}; it may "
                    f"be ({height}, {width}) or ({height}, {width}, 1)."
                )
        return Planned(shapes)

    def cpu(self, c: SampleContext, image: np.ndarray, x: np.ndarray, y: np.ndarray) -> np.ndarray:
        out = c.out
        _cpu.remap(image, x, y, *self._how, out)
        return out

    def gpu(
        self, c: BatchContext, images: DeviceBatch, x: DeviceBatch, y: DeviceBatch
    ) -> DeviceBatch:
        plan_batch(self, c, images, x, y)
        out = c.empty(images.extents, images.dtype)
        _gpu.remap(c.queue, images, x, y, *self._how, out)
        return out
