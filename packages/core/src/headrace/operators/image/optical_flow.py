"""`optical_flow`."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentChoiceError,
    ArgumentValueError,
    DataTypeError,
    MisusedArgumentError,
    ShapeError,
)
from headrace.kernels.cpu import optical_flow as _cpu
from headrace.kernels.gpu import transfer as _transfer
from headrace.operators.support.argument_types import BoolArg, FloatArg, ImageTypeArg, IntArg
from headrace.operators.support.arguments import given
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tracebacks import warn_at
from headrace.types import DALIDataType, DALIImageType

_GRIDS, _HINT_GRIDS = (1, 2, 4), (1, 2, 4, 8)
_COLORS = (DALIImageType.RGB, DALIImageType.BGR, DALIImageType.GRAY)
_LIMITS = (0.375, 0.75, 1.0)
"""Upper end of each of the presets."""
_warned: list[bool] = []


@operator(
    "optical_flow",
    inputs=(
        Input(
            "frames",
            f"Sequences of two frames and more, of {_cpu.SMALLEST} x {_cpu.SMALLEST} pixels at "
            "least.",
            layouts=("FHWC",),
            dtypes=(DALIDataType.UINT8,),
        ),
        Input(
            "hints",
            "With `enable_external_hints`, what the result may be: float32, of the shape of the "
            "result, but for `hint_grid` in place of `output_grid`. It may have one frame more, "
            "which comes first and is not used.",
            optional=True,
        ),
    ),
    args=(
        Arg(
            "preset",
            FloatArg,
            0.0,
            "Speed for quality: 0 is the best, 0.5 is between, 1 is the fastest.",
        ),
        Arg("output_grid", IntArg, 4, "Pixels of the side of a cell of the result: 1, 2 or 4."),
        Arg("hint_grid", IntArg, 4, "The same of the hints: 1, 2, 4 or 8."),
        Arg(
            "enable_temporal_hints",
            BoolArg,
            False,
            "Begin with the result for the frame before, where there is no hint.",
        ),
        Arg("enable_external_hints", BoolArg, False, "Begin with the hints, the second input."),
        Arg("image_type", ImageTypeArg, DALIImageType.RGB, "Colours: RGB, BGR or GRAY."),
        Arg("output_format", IntArg, None, "The old name.", deprecated="output_grid"),
    ),
    output_docs=(
        "For each frame but the first, float32: columns and rows from each cell to where it was.",
    ),
)
class OpticalFlow(SampleOperator):
    """Finds out where the pixels of each frame were in the frame before, by OpenCV's DIS.

    It works on the host, also on data of the GPU. Of each cell the result is the mean of its
    pixels.

    Examples
    --------
    >>> motion = fn.optical_flow(frames, output_grid=1, preset=0.5)
    """

    @property
    def _grid(self) -> int:
        found: int | None = self.args.output_format  # its old name
        return int(self.args.output_grid) if found is None else found

    def check_constants(self) -> None:
        args = self.args
        if not 0 <= args.preset <= 1:
            raise ArgumentValueError(f"`preset` must be from 0 to 1, got {args.preset}.")
        for name, grid, grids in (
            ("output", self._grid, _GRIDS),
            ("hint", args.hint_grid, _HINT_GRIDS),
        ):
            if grid not in grids:
                raise ArgumentChoiceError(
                    f"{name.capitalize()} grid size: {grid} is not supported, supported are: "
                    f"{', '.join(map(str, grids))}. It is `{name}_grid`."
                )
        if args.image_type not in _COLORS:
            raise ArgumentChoiceError(
                f"`image_type` must be RGB, BGR or GRAY, got {args.image_type.name}."
            )

    def infer(self, frames: Spec, hints: Spec | None = None) -> Spec:
        args = self.args
        self._hinted = args.enable_external_hints
        if self._hinted and hints is None:
            raise MisusedArgumentError(
                "Incorrect number of inputs. Expected: 2, Obtained: 1. `enable_external_hints` "
                "asks for hints as the second input."
            )
        if self._hinted and hints is not None and hints.dtype != DALIDataType.FLOAT:
            raise DataTypeError(f"Hints must be FLOAT, got {hints.dtype.name}; `fn.cast` them.")
        level = next(k for k, limit in enumerate(_LIMITS) if args.preset <= limit)
        self._preset = _cpu.PRESETS[level]
        return Spec(DALIDataType.FLOAT, 4, "FHWC")

    def suspect(self, frames: Spec, hints: Spec | None = None) -> str:  # type: ignore[override]
        if hints is None or self._hinted:
            return ""
        return "Hints are not used without `enable_external_hints=True`."

    def plan(self, c: PlanContext, frames: Samples, hints: Samples | None = None) -> Planned:
        shapes = repeated(frames.shapes, c.size)
        count, height, width, channels = shapes.T
        if (count < 2).any():
            raise ShapeError(
                "Sequences for optical flow must have at least 2 frames, got "
                f"{count[count < 2][0]}."
            )
        small = (height < _cpu.SMALLEST) | (width < _cpu.SMALLEST)
        if small.any():
            raise ShapeError(
                f"Frames must have at least {_cpu.SMALLEST} x {_cpu.SMALLEST} pixels, got "
                f"{height[small][0]} x {width[small][0]}."
            )
        gray = self.args.image_type == DALIImageType.GRAY
        wrong = channels != 1 if gray else (channels != 3) & (channels != 4)
        if wrong.any():
            raise ShapeError(
                f"Frames of `image_type` {self.args.image_type.name} have "
                f"{'1 channel' if gray else '3 channels'}, got {channels[wrong][0]}."
            )
        out = self._cells(shapes, self._grid)
        if self._hinted and hints is not None:
            wanted, found = self._cells(shapes, self.args.hint_grid), repeated(hints.shapes, c.size)
            fits = found.shape[1] == 4 and (found[:, 1:] == wanted[:, 1:]).all()
            if not fits or not np.isin(found[:, 0] - wanted[:, 0], (0, 1)).all():
                raise ShapeError(
                    f"Hints must have the shape {tuple(wanted[0].tolist())}, for a `hint_grid` of "
                    f"{self.args.hint_grid}, or one frame more; got {tuple(found[0].tolist())}."
                )
        return Planned(out)

    @staticmethod
    def _cells(shapes: np.ndarray, grid: int) -> np.ndarray:
        """Shapes of a vector for each cell."""
        found = shapes.copy()
        found[:, 0] -= 1
        found[:, 1:3] = -(-found[:, 1:3] // grid)
        found[:, 3] = 2
        return found

    def cpu(
        self, c: SampleContext, frames: np.ndarray, hints: np.ndarray | None = None
    ) -> np.ndarray:
        out = c.out
        self._fill(frames, hints, out)
        return out

    def _fill(self, frames: np.ndarray, hints: np.ndarray | None, out: np.ndarray) -> None:
        args = self.args
        first = None
        if self._hinted and hints is not None:
            first = list(hints[-len(out) :])
        _cpu.optical_flow(
            _cpu.gray_frames(frames, args.image_type.name),
            self._preset,
            self._grid,
            first,
            args.hint_grid,
            args.enable_temporal_hints,
            out,
        )

    def gpu(self, c: BatchContext, frames: DeviceBatch, hints: Any = None) -> DeviceBatch:
        if not _warned:
            _warned.append(True)
            warn_at(
                self.user_line,
                "`optical_flow` works on the host, by OpenCV: its data is copied from the GPU and "
                "back.",
            )
        planned = plan_batch(self, c, frames, *given(hints))
        shapes = repeated(planned.shapes[0], c.size).tolist()
        batches = [frames] if hints is None or not self._hinted else [frames, hints]
        copies = [_transfer.to_host(c.queue, each.materialise(c.queue)).rows for each in batches]
        c.queue.runtime.synchronize(c.queue.stream)
        found = [np.empty(shape, np.float32) for shape in shapes]
        for rows, out in zip(zip(*copies, strict=True), found, strict=True):
            self._fill(rows[0], rows[1] if len(rows) > 1 else None, out)
        return _transfer.to_device(c.queue, found)
