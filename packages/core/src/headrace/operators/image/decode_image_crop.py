"""`decoders.image_crop`."""

from __future__ import annotations

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
from headrace.operators.support.schema import OldName, Spec
from headrace.operators.support.windows.arguments import (
    CROP_ARGS,
    CROP_RULES,
    CropWindow,
    check_crop,
)
from headrace.operators.support.windows.arithmetic import Windows


@operator(
    "decoders.image_crop",
    old_names=("image_decoder_crop", OldName("experimental.decoders.image_crop", dynamic=True)),
    inputs=ENCODED,
    args=(*DECODE_ARGS, *CROP_ARGS),
    rules=CROP_RULES,
    output_docs=OUTPUT_DOCS,
    devices=DEVICES,
)
class DecodeImageCrop(WindowDecoder):
    """Decodes a window of each image, given by its size and relative position.

    The result is that of `decoders.image` and `crop`; what lies outside of the window is not
    decoded where the format allows it. Formats are those of `decoders.image`.

    Examples
    --------
    >>> centre = fn.decoders.image_crop(encoded, crop=(224, 224))
    """

    def check_constants(self) -> None:
        check_crop(self.args)

    def infer(self, encoded: Spec) -> Spec:
        self._crop = CropWindow(self, "HW")
        return super().infer(encoded)

    def windows(self, c: PlanContext, extents: np.ndarray, *window: Any) -> Windows:
        return self._crop.plan(c, extents)
