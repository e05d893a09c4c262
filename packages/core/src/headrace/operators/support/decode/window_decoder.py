"""Shared code of the decoders of an image's window."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, OutOfRangeError
from headrace.operators.support.decode.image_decoder import ImageDecoder
from headrace.operators.support.planning import PlanContext
from headrace.operators.support.windows.arithmetic import Windows


class WindowDecoder(ImageDecoder):
    """A decoder of the windows that `windows` chooses."""

    has_window = True

    def windows(self, c: PlanContext, extents: np.ndarray, *window: Any) -> Windows:
        """Anchors and shapes, (y, x) and (height, width), of windows in images.

        `extents`: heights and widths of the images, int64 ``(samples, 2)``.
        """
        raise NotImplementedError

    def regions(self, c: PlanContext, extents: np.ndarray, *window: Any) -> np.ndarray:
        anchors, shapes = self.windows(c, extents, *window)
        outside = ((anchors < 0) | (anchors + shapes > extents)).any(axis=1)
        if outside.any():
            k = int(outside.argmax())
            (y, x), (rows, columns), (height, width) = (a[k] for a in (anchors, shapes, extents))
            raise OutOfRangeError(
                f"The cropping window {y}..{y + rows}, {x}..{x + columns} is not valid for image "
                f"dimensions [{height} x {width}]. Make it smaller, or decode the whole image and "
                'cut it with an `out_of_bounds_policy` ("pad", "trim_to_shape", ...).'
            )
        empty = (shapes <= 0).any(axis=1)
        if empty.any():
            rows, columns = shapes[int(empty.argmax())]
            raise ArgumentValueError(
                f"The window of {rows} x {columns} pixels is empty; a decoded image cannot be."
            )
        return np.concatenate([anchors, anchors + shapes], axis=1)
