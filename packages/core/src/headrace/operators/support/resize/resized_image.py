"""A resized image whose pixels are computed when its consumer asks for them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.operators.support.lazy_image import Allocator, LazyImage, PlainSource

if TYPE_CHECKING:
    from headrace.kernels.cpu.resample_taps import PlannedAxis
    from headrace.operators.support.operator import SampleContext


class ResizedImage(LazyImage):
    """A `LazyImage` that resamples just the window that is asked for.

    It in turn asks its source, an array or itself a `LazyImage`, for no more than the pixels
    under the filters of that window. A window has the same bits whether it is computed by itself,
    as a part of the whole image, or, by `normalized`, within a fused normalisation.
    """

    __slots__ = (
        "_antialias",
        "_columns",
        "_context",
        "_kernel",
        "_rounds_to",
        "_rows",
        "_source",
    )

    def __init__(
        self,
        context: SampleContext,
        kernel: Any,
        source: np.ndarray | LazyImage,
        axes: Sequence[PlannedAxis],
        antialias: bool,
        dtype: np.dtype,
        rounds_to: np.dtype | None,
    ) -> None:
        self._context = context
        self._kernel = kernel
        self._source = source
        self._rows, self._columns = axes
        self._antialias = antialias
        self._rounds_to = rounds_to
        self.shape = (axes[0][6], axes[1][6], source.shape[2])
        self.dtype = dtype

    def region(
        self, y0: int, x0: int, y1: int, x1: int, empty: Allocator | None = None
    ) -> np.ndarray:
        """Pixels of rows ``y0 <= y < y1`` and columns ``x0 <= x < x1``."""
        shape = (max(y1 - y0, 0), max(x1 - x0, 0), self.shape[2])
        out = (empty or self._context.temp)(shape, self.dtype)
        self.write(out, y0, x0)
        return out

    def write(self, out: np.ndarray, y0: int = 0, x0: int = 0) -> None:
        """Fill `out`, a contiguous (H, W, C) array, with the window that starts at (y0, x0)."""
        self._render(out, y0, x0, None, mirror=False)

    def normalized(
        self,
        out: np.ndarray,
        y0: int,
        x0: int,
        means: np.ndarray,
        factors: np.ndarray,
        *,
        mirror: bool,
    ) -> None:
        """Fill `out` with ``(pixel - mean) * factor``, without storing the pixels in between."""
        self._render(out, y0, x0, (means, factors), mirror=mirror)

    @property
    def axes(self) -> tuple[PlannedAxis, PlannedAxis]:
        """Sampling of rows and columns, with the region that makes up this image."""
        return self._rows, self._columns

    @property
    def antialias(self) -> bool:
        """True if filters widen where an axis shrinks."""
        return self._antialias

    @property
    def rounds_to(self) -> np.dtype | None:
        """The type of the pixels if it is an integer type."""
        return self._rounds_to

    def resampled_source(self) -> PlainSource | None:
        """Source of the pixels that are resampled, if they are uint8 and a compiled loop can read
        them.
        """
        source = self._source
        if source.dtype != np.uint8:
            return None
        if isinstance(source, LazyImage):
            return source.plain_source()
        if not (source.flags.c_contiguous and source.size):
            return None
        height, width, _ = source.shape
        return PlainSource(source, "", False, height, width, 0, 0, False)

    def _render(
        self,
        out: np.ndarray,
        y0: int,
        x0: int,
        normalization: tuple[np.ndarray, np.ndarray] | None,
        *,
        mirror: bool,
    ) -> None:
        if not out.size:
            return
        kernel = self._kernel
        height, width, _ = out.shape
        antialias = self._antialias
        rows = kernel.planned_taps(self._rows, y0, height, antialias, stepwise=True)
        columns = kernel.planned_taps(
            self._columns, x0, width, antialias, stepwise=False, mirror=mirror
        )
        source, top, left = self._source, 0, 0
        if not isinstance(source, np.ndarray):
            top, left = rows.low, columns.low
            source = source.region(top, left, rows.high, columns.high)
        kernel.resample_image(
            source,
            top,
            left,
            rows,
            columns,
            out,
            self._context.temp,
            rounds_to=self._rounds_to,
            normalization=normalization,
        )
