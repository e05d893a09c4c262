"""`debayer`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentChoiceError, ArgumentValueError, DataTypeError, ShapeError
from headrace.kernels.cpu import debayer as _cpu
from headrace.kernels.gpu import debayer as _gpu
from headrace.operators.support.argument_types import IntListArg, StringArg
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType

_NPP = "default_npp"
_ON_CPU = ", ".join(f'"{name}"' for name in _cpu.ALGORITHMS)


@operator(
    "debayer",
    inputs=Input(
        "images",
        "Measurements of sensors: images of one channel, of even height and width, or sequences.",
        layouts=("HWC", "HW"),
        dtypes=(DALIDataType.UINT8, DALIDataType.UINT16),
    ),
    args=(
        Arg(
            "blue_position",
            IntListArg,
            REQUIRED,
            "Row and column of blue, 0 or 1, in the 2 x 2 tile that begins at row 1 and column 1: "
            "(0, 0) is OpenCV's BG, (0, 1) GB, (1, 0) GR, (1, 1) RG. One number stands for both.",
            per_frame=True,
            shape_of="(2,)",
        ),
        Arg(
            "algorithm",
            StringArg,
            None,
            'On the CPU "bilinear_ocv", the default, "edgeaware_ocv", "vng_ocv" (uint8 only) or '
            '"gray_ocv", which makes gray images; on the GPU "default_npp": bilinear, and green '
            "along the axis along which red or blue changes less.",
        ),
    ),
    output_docs=("RGB images, in the layout HWC or FHWC, of the type of the input.",),
    frames=True,
    old_names=("experimental.debayer",),
)
class Debayer(SampleOperator):
    """Makes RGB images of what a sensor behind a mosaic of colour filters measured.

    Examples
    --------
    >>> colors = fn.debayer(sensors, blue_position=[0, 0])
    """

    def check_constants(self) -> None:
        given = self.args.algorithm
        self._algorithm = name = None if given is None else given.lower()
        if name is not None and name != _NPP and name not in _cpu.ALGORITHMS:
            raise ArgumentChoiceError(
                f"Unsupported debayer algorithm was specified: `{given}`. `algorithm` may be "
                f'{_ON_CPU} on the CPU, "{_NPP}" on the GPU.'
            )
        if self.args.blue_position is not None:
            _check_position(np.array(self.args.blue_position, np.int64)[np.newaxis])

    def infer(self, images: Spec) -> Spec:
        name = self._algorithm
        if name == "vng_ocv" and images.dtype != DALIDataType.UINT8:
            raise DataTypeError(
                "VNG debayering is only supported with UINT8, got "
                f'{images.dtype.name}. `algorithm="edgeaware_ocv"` takes UINT16.'
            )
        self._channels = 1 if name == "gray_ocv" else 3
        return Spec(images.dtype, 3, "HWC")

    def plan(self, c: PlanContext, images: Samples) -> Planned:
        shapes = images.shapes
        if shapes.shape[1] == 3 and (shapes[:, 2] != 1).any():
            raise ShapeError(
                "The debayer operator expects grayscale (i.e. single channel) images, got "
                f"{shapes[shapes[:, 2] != 1][0, 2]} channels. The layout of sequences is FHW or "
                "FHWC; `fn.reinterpret` sets it."
            )
        odd = (shapes[:, :2] % 2 != 0).any(axis=1)
        if odd.any():
            height, width = shapes[odd][0, :2]
            raise ShapeError(
                "The height and width of the image to debayer must be even, got "
                f"{height} x {width}. `fn.crop` cuts a row or column off."
            )
        positions = c.array("blue_position", np.dtype(np.int64))
        assert positions is not None  # it is required
        positions = _check_position(positions)
        found = np.empty((c.size, 3), np.int64)
        found[:, :2], found[:, 2] = shapes[:, :2], self._channels
        return Planned(found, (repeated(positions, c.size),))

    def cpu(self, c: SampleContext, image: np.ndarray) -> np.ndarray:
        if self._algorithm == _NPP:
            raise ArgumentChoiceError(
                f"{_NPP} algorithm is not supported on CPU. `algorithm` may be {_ON_CPU}."
            )
        out = c.out
        image = image.reshape(image.shape[:2])
        _cpu.debayer(image, c.row[0], self._algorithm or "bilinear_ocv", out)
        return out

    def gpu(self, c: BatchContext, images: DeviceBatch) -> DeviceBatch:
        if self._algorithm not in (None, _NPP):
            raise ArgumentChoiceError(
                f"{self._algorithm} algorithm is not supported on GPU. `algorithm` may be "
                f'"{_NPP}"; the others run on the CPU.'
            )
        planned = plan_batch(self, c, images)
        out = c.empty(planned.shapes[0], images.dtype)
        _gpu.debayer(c.queue, images, planned.table[0], out)
        return out


def _check_position(positions: np.ndarray) -> np.ndarray:
    """The rows and columns of blue, ``(samples, 2)``, or an error."""
    if positions.shape[1:] not in ((1,), (2,)):
        raise ArgumentValueError(
            'Argument "blue_position" expects either a single value or a list of 2 elements, '
            f"row and column, got {positions.shape[1]}."
        )
    positions = np.broadcast_to(positions, (len(positions), 2))
    wrong = ((positions < 0) | (positions > 1)).any(axis=1)
    if wrong.any():
        row, column = positions[wrong][0]
        raise ArgumentValueError(
            "The `blue_position` position must lie within 2x2 tile, 0 or 1 each, got: "
            f"{row} x {column}."
        )
    return positions
