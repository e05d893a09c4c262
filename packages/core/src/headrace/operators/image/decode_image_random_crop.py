"""`decoders.image_random_crop`."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.kernels.plan import random_crop as _random_crop
from headrace.operators.support.decode.image_decoder import (
    DECODE_ARGS,
    DEVICES,
    ENCODED,
    OUTPUT_DOCS,
)
from headrace.operators.support.decode.window_decoder import WindowDecoder
from headrace.operators.support.operator import BatchContext, operator
from headrace.operators.support.planning import PlanContext
from headrace.operators.support.schema import OldName, Spec
from headrace.operators.support.windows.arithmetic import Windows
from headrace.operators.support.windows.random_crop import RANDOM_CROP_ARGS, random_crop_ranges


@operator(
    "decoders.image_random_crop",
    old_names=(
        "image_decoder_random_crop",
        OldName("experimental.decoders.image_random_crop", dynamic=True),
    ),
    inputs=ENCODED,
    args=(*DECODE_ARGS, *RANDOM_CROP_ARGS),
    output_docs=OUTPUT_DOCS,
    devices=DEVICES,
    random=True,
)
class DecodeImageRandomCrop(WindowDecoder):
    """Decodes a random window of each image.

    The window's area is uniform between the bounds of `random_area`, as a fraction of the image's
    area, the logarithm of its aspect ratio (width / height) between those of
    `random_aspect_ratio`, and its place anywhere in the image. What lies outside of the window is
    not decoded where the format allows it. Formats are those of `decoders.image`.

    Examples
    --------
    >>> crops = fn.decoders.image_random_crop(encoded, random_area=(0.2, 1.0))
    >>> images = fn.resize(crops, size=(224, 224))
    """

    def check_constants(self) -> None:
        random_crop_ranges(self.args)

    def infer(self, encoded: Spec) -> Spec:
        args = self.args
        self._area, self._ratio = random_crop_ranges(args)
        self._attempts = args.num_attempts
        return super().infer(encoded)

    def windows(self, c: PlanContext, extents: np.ndarray, *window: Any) -> Windows:
        found = _random_crop.random_windows(
            extents, self._area, self._ratio, self._attempts, c.seed, c.iteration, c.indices
        )
        return found[:, :2], found[:, 2:]

    def regions_of_unknown(self, c: BatchContext, extents: np.ndarray) -> np.ndarray:
        anchors, shapes = self.windows(c, extents)
        return np.concatenate([anchors, anchors + shapes], axis=1)
