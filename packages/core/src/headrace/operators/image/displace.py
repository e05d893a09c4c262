"""`sphere`, `water` and `jitter`."""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError
from headrace.kernels.cpu import displace as _cpu
from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.fill import fill_of_type
from headrace.kernels.cpu.random import fill_uniform
from headrace.kernels.gpu import displace as _gpu
from headrace.kernels.gpu import random as _gpu_random
from headrace.operators.support.argument_types import FloatArg, IntArg, InterpTypeArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.types import DALIDataType, DALIInterpType, to_numpy_type

_MOST_PLACES = 1 << 15
_INPUT = Input(
    "images", "Images.", layouts=("HWC",), dtypes=(DALIDataType.UINT8, DALIDataType.FLOAT)
)
_ARGS = (
    Arg("mask", IntArg, 1, "Whether an image is changed; 0 leaves it as it is.", per_sample=True),
    Arg(
        *("interp_type", InterpTypeArg, DALIInterpType.INTERP_NN, "How values come about."),
        choices=(DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR),
    ),
    Arg("fill_value", FloatArg, 0.0, "Value of pixels from outside; fractions are dropped."),
)


class _Displacement(SampleOperator):
    """Takes each pixel from another place of its image."""

    numbers: tuple[float, ...] = ()

    def displace(self, image: np.ndarray, fill: Any, places: np.ndarray, out: np.ndarray) -> None:
        """Fill `out` with displaced pixels, as the kernels say."""
        raise NotImplementedError

    def infer(self, images: Spec) -> Spec:
        self._linear = self.args.interp_type == DALIInterpType.INTERP_LINEAR
        dtype = np.dtype(to_numpy_type(images.dtype))
        self._fill = fill_of_type([self.args.fill_value], dtype)[0]
        self._store = converter(np.dtype(np.float32), dtype, rounded=True)
        return images

    def plan(self, c: PlanContext, images: Samples) -> Planned:
        mask = numbers_of(c, "mask", np.int32) != 0
        return Planned(repeated(images.shapes, c.size), (mask,))

    def cpu(self, c: SampleContext, image: np.ndarray) -> np.ndarray:
        out = c.out
        if not c.row[0] or not out.size:
            np.copyto(out, image)
            return out
        image, places = np.ascontiguousarray(image), c.temp((2, out.shape[1]), np.float32)
        if not self._linear:
            self.displace(image, self._fill, places, out)
            return out
        found = c.temp(out.shape, np.float32)
        self.displace(image, self._fill, places, found)
        self._store(found, out)
        return out

    def gpu(self, c: BatchContext, images: DeviceBatch) -> DeviceBatch:
        (mask,) = plan_batch(self, c, images).table
        out = c.empty(images.extents, images.dtype)
        fill = np.float32(self._fill)
        _gpu.displace(c.queue, images, mask, self.numbers, self._linear, fill, out)
        return out


@operator(
    "sphere", inputs=_INPUT, args=_ARGS, output_docs=("The images, in the layout of the input.",)
)
class Sphere(_Displacement):
    """Shows images as if on a sphere: magnified in their middle.

    Examples
    --------
    >>> bulged = fn.sphere(images, mask=fn.random.coin_flip(), fill_value=127)
    """

    def displace(self, image: np.ndarray, fill: Any, places: np.ndarray, out: np.ndarray) -> None:
        _cpu.sphere(image, self._linear, fill, places, out)


@operator(
    "water",
    inputs=_INPUT,
    args=(
        *(
            Arg(f"{name}_{axis}", FloatArg, default, f"{text} along {axis}.")
            for name, default, text in (
                ("ampl", 10.0, "Amplitude, in pixels, of the wave that moves pixels"),
                (
                    "freq",
                    None,
                    "Its frequency, in radians a pixel (if not given, 2 pi / 128), of what moves",
                ),
                ("phase", 0.0, "Its phase, in radians, of what moves"),
            )
            for axis in "xy"
        ),
        *_ARGS,
    ),
    output_docs=("The images, in the layout of the input.",),
)
class Water(_Displacement):
    """Shows images as if below water with waves: ``x + ampl_x * sin(freq_x * y + phase_x)`` and
    ``y + ampl_y * cos(freq_y * x + phase_y)`` are where a pixel comes from.

    Examples
    --------
    >>> waves = fn.water(images, ampl_x=4, freq_x=0.1, fill_value=127)
    """

    def infer(self, images: Spec) -> Spec:
        names = ("ampl_x", "freq_x", "phase_x", "ampl_y", "freq_y", "phase_y")
        given = [getattr(self.args, name) for name in names]
        self.numbers = tuple(2 * np.pi / 128 if number is None else number for number in given)
        return super().infer(images)

    def displace(self, image: np.ndarray, fill: Any, places: np.ndarray, out: np.ndarray) -> None:
        height, width = image.shape[:2]
        ampl_x, freq_x, phase_x, ampl_y, freq_y, phase_y = map(np.float32, self.numbers)
        x, y = np.arange(width, dtype=np.float32), np.arange(height, dtype=np.float32)
        with np.errstate(invalid="ignore"):
            along_x = ampl_x * np.sin(freq_x * y + phase_x)
            along_y = ampl_y * np.cos(freq_y * x + phase_y)
        _cpu.water(image, along_x, along_y, self._linear, fill, places, out)


@operator(
    "jitter",
    inputs=_INPUT,
    args=(
        Arg(
            "nDegree",
            IntArg,
            2,
            "How many places, one after the other along each axis, a pixel is drawn from: the "
            "first is nDegree // 2 before it.",
        ),
        *_ARGS[:-1],
        Arg(
            "fill_value",
            FloatArg,
            0.0,
            "Value of pixels from outside. None are: places are kept inside of the image.",
        ),
    ),
    output_docs=("The images, in the layout of the input.",),
    random=True,
)
class Jitter(_Displacement):
    """Takes each pixel from a random place near it.

    Places are whole pixels, drawn along x and y by themselves, and those outside of the image are
    moved to its border; so both kinds of interpolation give the same.

    Examples
    --------
    >>> frosted = fn.jitter(images, nDegree=6)
    """

    def infer(self, images: Spec) -> Spec:
        if not 0 <= self.args.nDegree < _MOST_PLACES:
            raise ArgumentValueError(
                f"`nDegree` must be from 0 to {_MOST_PLACES - 1}, got {self.args.nDegree}."
            )
        return super().infer(images)

    def cpu(self, c: SampleContext, image: np.ndarray) -> np.ndarray:
        out = c.out
        if not c.row[0] or not out.size:
            np.copyto(out, image)
            return out
        units = c.temp((1, 2 * math.prod(out.shape[:2])), np.float32)
        fill_uniform(units, c.seed, c.iteration, c.index, 0.0, 1.0)
        _cpu.jitter(image, units[0], self.args.nDegree, out)
        return out

    def gpu(self, c: BatchContext, images: DeviceBatch) -> DeviceBatch:
        (mask,) = plan_batch(self, c, images).table
        out = c.empty(images.extents, images.dtype)
        units = c.temp(2 * volumes(out.shapes[:, :2])[:, np.newaxis], np.float32)
        ends = np.zeros(c.size), np.ones(c.size)
        _gpu_random.fill_uniform(c.queue, units, c.seed, c.iteration, c.indices, *ends)
        _gpu.jitter(c.queue, images, mask, units, self.args.nDegree, out)
        return out
