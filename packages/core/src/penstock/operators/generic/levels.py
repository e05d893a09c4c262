"""What becomes of each level of an image, in place of what becomes of each pixel."""

from __future__ import annotations

import numpy as np

from penstock.errors import ShapeError
from penstock.kernels.cpu.levels import map_levels
from penstock.operators.support.operator import SampleContext, SampleOperator, operator
from penstock.operators.support.planning import PlanContext, Planned, Samples
from penstock.operators.support.schema import Input, Spec
from penstock.types import DALIDataType


@operator(
    "_map_levels",
    inputs=(
        Input("data", "Images, or sequences of them.", dtypes=(DALIDataType.UINT8,)),
        Input(
            "table",
            "What each level becomes: shape (256, 1, 1), or the last extent that of the data, for "
            "channels; with frames in front, a table for each.",
            dtypes=(DALIDataType.UINT8,),
        ),
    ),
    output_docs=("The images with other levels, in the layout of the input.",),
    hidden=True,
    devices=("cpu",),
    written="an augmentation",
)
class MapLevels(SampleOperator):
    """Replaces each level by what a table has for it.

    A function of single pixels is computed for 256 levels so, and not for all pixels.
    """

    def infer(self, data: Spec, table: Spec) -> Spec:
        return data

    def plan(self, c: PlanContext, data: Samples, table: Samples) -> Planned:
        return Planned(data.shapes)

    def cpu(self, c: SampleContext, data: np.ndarray, table: np.ndarray) -> np.ndarray:
        out = c.out
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
        return out
