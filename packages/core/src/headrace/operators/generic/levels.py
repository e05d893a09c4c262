"""Operators on images computed as a table with one entry for each level of uint8, not for each
pixel.
"""

from __future__ import annotations

from functools import partial

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.cpu import reduce
from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.levels import map_levels
from headrace.operators.support.arithmetic.shapes import not_broadcastable
from headrace.operators.support.operator import SampleContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Input
from headrace.types import DALIDataType

LEVELS = np.arange(256, dtype=np.uint8).reshape(256, 1, 1)
LUMA = np.array([0.299, 0.587, 0.114], np.float32)
"""The shares of the channels in what an eye takes for brightness."""
_augmentation = partial(operator, hidden=True, devices=("cpu",), written="an augmentation")
_DATA = Input("data", "Images, or sequences of them.", dtypes=(DALIDataType.UINT8,))


@_augmentation(
    "_map_levels",
    inputs=(
        _DATA,
        Input(
            "table",
            "New value of each level: shape (256, 1, 1), or the last extent that of the data, for "
            "channels; with frames in front, a table for each.",
            dtypes=(DALIDataType.UINT8,),
        ),
    ),
    output_docs=("The images with other levels, in the layout of the input.",),
)
class MapLevels(SampleOperator):
    """Replaces each level by what a table has for it.

    A function of single pixels is computed for 256 levels so, and not for all pixels.
    """

    def plan(self, c: PlanContext, data: Samples, table: Samples) -> Planned:
        return Planned(data.shapes)

    def cpu(self, c: SampleContext, data: np.ndarray, table: np.ndarray) -> np.ndarray:
        out = c.out
        _map(data, table, out)
        return out


def _map(data: np.ndarray, table: np.ndarray, out: np.ndarray) -> None:
    tables = table.reshape(-1, *table.shape[-3:])
    frames = len(tables) > 1
    if tables.shape[1:3] != (256, 1) or (frames and data.shape[:1] != tables.shape[:1]):
        raise ShapeError(
            f"The levels of data of shape {data.shape} cannot be mapped by a table of shape "
            f"{table.shape}. Images have the layout HWC, sequences FHWC."
        )
    for source, into, own in zip(
        data if frames else [data], out if frames else [out], tables, strict=True
    ):
        if tables.shape[3] not in (1, source.shape[-1]):
            raise ShapeError(
                f"There are tables for {tables.shape[3]} channels, and the data has "
                f"{source.shape[-1]}. Images have the layout HWC, sequences FHWC."
            )
        map_levels(source, own[:, 0], into)


class _OfImages(SampleOperator):
    """Replaces levels by what follows from all those of the image, or from a parameter: only the
    samples that are augmented have a table worked out.
    """

    def plan(self, c: PlanContext, data: Samples, *parameters: Samples) -> Planned:
        return Planned(data.shapes)

    def cpu(self, c: SampleContext, data: np.ndarray, *parameters: np.ndarray) -> np.ndarray:
        out = c.out
        if data.size:
            try:
                levels = self.levels(data, (data.ndim - 3, data.ndim - 2), *parameters)
            except ValueError:
                raise not_broadcastable([data.shape, *(p.shape for p in parameters)]) from None
            table = np.empty(levels.shape, np.uint8)
            converter(levels.dtype, table.dtype)(levels, table)
            _map(data, table, out)
        return out

    def levels(
        self, data: np.ndarray, axes: tuple[int, int], *parameters: np.ndarray
    ) -> np.ndarray:
        """Compute the value of each level, real ``(256, 1, channels or 1)``, with frames in
        front.
        """
        raise NotImplementedError


_IMAGES = Input(
    "data", "Images, or sequences of them.", layouts=("HWC", "FHWC"), dtypes=(DALIDataType.UINT8,)
)


@_augmentation(
    "_contrast",
    inputs=(_IMAGES, Input("factor", "Factor of distances from the mean luma.")),
    output_docs=("The images with another contrast.",),
)
class Contrast(_OfImages):
    """Multiplies the distances of levels from the mean luma of the image."""

    def levels(
        self, data: np.ndarray, axes: tuple[int, int], *parameters: np.ndarray
    ) -> np.ndarray:
        (factor,) = parameters
        means = reduce.mean(data, axes).astype(np.float32) * LUMA
        center = means.sum(axis=-1, dtype=np.float64, keepdims=True).astype(np.float32)
        factor = factor if factor.dtype.kind == "f" else factor.astype(np.float32)
        levels: np.ndarray = center + (LEVELS - center) * factor
        return levels


@_augmentation(
    "_auto_contrast", inputs=_IMAGES, output_docs=("The images with all levels of each channel.",)
)
class AutoContrast(_OfImages):
    """Stretches the levels of each channel to the whole range."""

    def levels(
        self, data: np.ndarray, axes: tuple[int, int], *parameters: np.ndarray
    ) -> np.ndarray:
        low = reduce.extremes(data, axes, largest=False)
        extent = reduce.extremes(data, axes, largest=True) - low
        flat = (extent == 0).astype(np.float32)
        scale = np.float32(255) / (extent + flat)
        levels: np.ndarray = (LEVELS - low) * scale * (1 - flat) + LEVELS * flat
        return levels


@_augmentation(
    "_solarize",
    inputs=(_DATA, Input("threshold", "The first level that is inverted.")),
    output_docs=("The images with bright levels inverted.",),
)
class Solarize(_OfImages):
    """Inverts levels from a threshold on."""

    def levels(
        self, data: np.ndarray, axes: tuple[int, int], *parameters: np.ndarray
    ) -> np.ndarray:
        return np.where(parameters[0] > LEVELS, LEVELS, 255 - LEVELS)


@_augmentation(
    "_solarize_add",
    inputs=(_DATA, Input("shift", "Number added to dark levels.")),
    output_docs=("The images with dark levels raised.",),
)
class SolarizeAdd(_OfImages):
    """Adds to levels below 128."""

    def levels(
        self, data: np.ndarray, axes: tuple[int, int], *parameters: np.ndarray
    ) -> np.ndarray:
        levels: np.ndarray = LEVELS.astype(np.int16) + (LEVELS < 128) * parameters[0]
        return levels
