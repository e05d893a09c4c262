"""`coord_flip`."""

from __future__ import annotations

import numpy as np

from headrace.errors import LayoutError, ShapeError
from headrace.kernels.cpu import flip_points as _cpu
from headrace.kernels.gpu import flip_points as _gpu
from headrace.operators.support.argument_types import FloatArg, IntArg, LayoutArg
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.operator import BatchContext, ChunkContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch, repeated
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType

_AXES = "xyz"


@operator(
    "coord_flip",
    inputs=Input(
        "data",
        "Points ``(points, coordinates)``, with 1 to 3 coordinates.",
        dtypes=(DALIDataType.FLOAT,),
    ),
    args=(
        Arg(
            "layout",
            LayoutArg,
            "",
            'Order of the coordinates, such as ``"yx"``; if not given, x, y, z.',
        ),
        *(
            Arg(
                f"flip_{axis}",
                IntArg,
                int(axis == "x"),
                f"Whether points are mirrored along {axis}.",
                per_sample=True,
            )
            for axis in _AXES
        ),
        *(
            Arg(
                f"center_{axis}",
                FloatArg,
                0.5,
                f"The {axis} coordinate that stays where it is.",
                per_sample=True,
            )
            for axis in _AXES
        ),
    ),
    output_docs=("The mirrored points, without a layout.",),
)
class CoordFlip(SampleOperator):
    """Mirrors points along axes.

    Examples
    --------
    >>> mirror = fn.random.coin_flip()
    >>> images = fn.flip(images, horizontal=mirror)
    >>> landmarks = fn.coord_flip(landmarks, flip_x=mirror)
    """

    def infer(self, data: Spec) -> Spec:
        if data.ndim not in (2, None):
            raise ShapeError(f"Points are ``(points, coordinates)``; got {data.ndim} axes.")
        self._layout = self.args.layout or _AXES
        return data._replace(layout="")

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        """Factors and offsets of the coordinates, float32 ``(samples, 3)`` each."""
        most = int(data.shapes[:, 1].max(initial=0))
        if most > 3:
            raise ShapeError(f"Points have {most} coordinates; at most 3 are allowed.")
        for axis in _AXES[:most]:
            if axis not in self._layout:
                raise LayoutError(
                    f'`layout` of points with {most} coordinates must have "{axis}", got '
                    f'"{self._layout}".'
                )
        factors, offsets = np.ones((c.size, 3), np.float32), np.zeros((c.size, 3), np.float32)
        for axis in set(self._layout[:3]) & set(_AXES):
            flipped = numbers_of(c, f"flip_{axis}", np.int32) != 0
            center = numbers_of(c, f"center_{axis}", np.float32)
            column = self._layout.index(axis)
            factors[:, column] = np.where(flipped, -1, 1)
            offsets[:, column] = np.where(flipped, 2 * center, 0)
        shapes = repeated(data.shapes, c.size)
        return Planned(shapes, (factors, offsets))

    chunked = True

    def cpu_chunk(self, c: ChunkContext, data: Rows) -> Rows:
        out = c.out()
        assert out.flat is not None
        counts, axes = np.broadcast_to(data.shapes, (len(data.sizes), 2)).T
        factors, offsets = (np.asarray(column, np.float32).reshape(-1, 3) for column in c.table)
        assert out.begins is not None
        _cpu.flip_points(data.addresses, counts, axes, factors, offsets, out.flat, out.begins)
        return out

    def gpu(self, c: BatchContext, data: DeviceBatch) -> DeviceBatch:
        out = c.empty(data.extents, data.dtype)
        factors, offsets = plan_batch(self, c, data).table
        _gpu.flip_points(c.queue, data, factors, offsets, out)
        return out
