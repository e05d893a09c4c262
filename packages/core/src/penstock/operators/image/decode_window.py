"""What the decoders of a window of an image share."""

from __future__ import annotations

from typing import Any

import numpy as np

from penstock.errors import ArgumentValueError, OutOfRangeError
from penstock.kernels.cpu.decode.pixels import decode
from penstock.kernels.cpu.decode.stored import Region
from penstock.operators.deferred import DeferredWindow
from penstock.operators.image.decode_arguments import ImageDecoder
from penstock.operators.image.decode_deferred import EncodedImage
from penstock.operators.operator import SampleContext


class WindowDecoder(ImageDecoder):
    """A decoder of the window that `_window` chooses for each sample."""

    has_window = True

    def _window(
        self, c: SampleContext, height: int, width: int, *inputs: np.ndarray
    ) -> tuple[tuple[int, int], tuple[int, int]]:
        """Anchor and shape of the window, (y, x) and (height, width), in an image."""
        raise NotImplementedError

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> np.ndarray:
        data, header = self._open(inputs[0])
        region = self._region(c, *header.size(self._wanted.adjust_orientation), inputs)
        return decode(data, header, self._wanted, region, c.empty, c.temp)

    def defer(self, c: SampleContext, *inputs: Any) -> DeferredWindow:
        data, header = self._open(inputs[0])
        image = EncodedImage(c, data, header, self._wanted)
        y0, x0, y1, x1 = self._region(c, *image.shape[:2], inputs)
        return DeferredWindow(image, y0, x0, y1 - y0, x1 - x0)

    def _region(self, c: SampleContext, height: int, width: int, inputs: tuple[Any, ...]) -> Region:
        (y, x), (rows, columns) = self._window(c, height, width, *inputs[1:])
        if y < 0 or x < 0 or y + rows > height or x + columns > width:
            raise OutOfRangeError(
                f"The window of {rows} x {columns} pixels at row {y}, column {x} leaves the image "
                f"of {height} x {width} pixels. Make it smaller, or decode the whole image and cut "
                'it with an `out_of_bounds_policy` ("pad", "trim_to_shape", ...).'
            )
        if rows <= 0 or columns <= 0:
            raise ArgumentValueError(
                f"The window of {rows} x {columns} pixels is empty; a decoded image cannot be."
            )
        return y, x, y + rows, x + columns
