"""`decoders.image_slice`."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from headrace.operators.support.decode.image_decoder import (
    DECODE_ARGS,
    DEVICES,
    ENCODED,
    OUTPUT_DOCS,
)
from headrace.operators.support.decode.window_decoder import WindowDecoder
from headrace.operators.support.operator import operator
from headrace.operators.support.planning import PlanContext
from headrace.operators.support.schema import Input, OldName, Spec
from headrace.operators.support.windows.arguments import (
    SLICE_ARGS,
    SLICE_RULES,
    SliceWindow,
)
from headrace.operators.support.windows.arithmetic import Windows
from headrace.types import DALIDataType

_COORDINATE_TYPES = (DALIDataType.FLOAT, DALIDataType.INT32, DALIDataType.INT64)


@operator(
    "decoders.image_slice",
    old_names=("image_decoder_slice", OldName("experimental.decoders.image_slice", dynamic=True)),
    inputs=(
        replace(ENCODED, name="data"),
        Input(
            "anchor",
            "First coordinates of the window, one for each sliced axis.",
            dtypes=_COORDINATE_TYPES,
            device="cpu",
            optional=True,
        ),
        Input(
            "shape_input",
            "Extents of the window, one for each sliced axis.",
            dtypes=_COORDINATE_TYPES,
            device="cpu",
            optional=True,
        ),
    ),
    args=(*DECODE_ARGS, *SLICE_ARGS),
    rules=SLICE_RULES,
    output_docs=OUTPUT_DOCS,
    devices=DEVICES,
)
class DecodeImageSlice(WindowDecoder):
    """Decodes a window of each image, given by its coordinates.

    The result is that of `decoders.image` and `slice`; what lies outside of the window is not
    decoded where the format allows it. Coordinates are absolute (pixels) or relative (fractions of
    the extents), and belong to width and height, in this order, unless `axes` or `axis_names` say
    otherwise. All channels are decoded: only `H` (axis 0) and `W` (axis 1) can be sliced. Formats
    are those of `decoders.image`.

    Examples
    --------
    >>> left_half = fn.decoders.image_slice(encoded, rel_end=(0.5, 1.0))
    >>> boxes = fn.decoders.image_slice(encoded, anchor, shape, axis_names="HW")
    """

    def infer(self, encoded: Spec, *window: Spec) -> Spec:
        self._slice = SliceWindow(self, Spec(DALIDataType.UINT8, 2, "HW"), *window)
        return super().infer(encoded)

    def windows(self, c: PlanContext, extents: np.ndarray, *window: Any) -> Windows:
        positional = [s.rows if s.dense is None else s.dense for s in window]
        return self._slice.plan(c, extents, *positional)
