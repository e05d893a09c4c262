"""Images seen from elsewhere, by OpenCV."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from headrace.kernels.cpu.opencv import cv2

_PERIODS: dict[str, Callable[[int], int]] = {
    "wrap": lambda extent: extent,
    "reflect": lambda extent: 2 * extent,
    "reflect_101": lambda extent: max(2 * extent - 2, 1),
}
"""After how many elements of an axis what is outside repeats."""
_NEAR_PERIODS = 100
_SHIFT = np.array([[1, 0, 0.5], [0, 1, 0.5], [0, 0, 1]])
_BACK = np.array([[1, 0, -0.5], [0, 1, -0.5], [0, 0, 1]])


def from_corners(matrix: np.ndarray) -> np.ndarray:
    """A map of coordinates whose origin is the corner of the first pixel, as one of its centre."""
    return _BACK @ matrix.astype(np.float64) @ _SHIFT


def warp_perspective(
    image: np.ndarray,
    out: np.ndarray,
    matrix: np.ndarray,
    *,
    inverse: bool,
    interpolation: str,
    border: str,
    fill: tuple[float, ...],
    planar: bool,
) -> None:
    """Fill `out` with `image`, looked up where a projective map says.

    `matrix`: float64 ``(3, 3)``, of coordinates (x, y, 1) between centres of pixels.
    """
    if not out.size:
        return
    cv = cv2()
    kinds = {"nearest": cv.INTER_NEAREST, "linear": cv.INTER_LINEAR, "cubic": cv.INTER_CUBIC}
    borders = {
        "constant": cv.BORDER_CONSTANT,
        "replicate": cv.BORDER_REPLICATE,
        "reflect": cv.BORDER_REFLECT,
        "reflect_101": cv.BORDER_REFLECT_101,
        "wrap": cv.BORDER_WRAP,
    }
    flags = kinds[interpolation] | (cv.WARP_INVERSE_MAP if inverse else 0)
    values = (*fill, 0.0, 0.0, 0.0)[:4] if len(fill) > 1 else fill * 4
    image = np.ascontiguousarray(image)
    first = int(planar)
    if border == "reflect_101":  # of a single row or column OpenCV looks for the next one for ever
        for axis in (first, first + 1):
            if image.shape[axis] == 1:
                image = np.repeat(image, 2, axis)
    extents, (height, width) = image.shape[first : first + 2], out.shape[first : first + 2]
    places = None
    if border in _PERIODS:
        places = _places_of_far(matrix, inverse, extents, height, width, _PERIODS[border])
    for plane, target in zip(image, out, strict=True) if planar else [(image, out)]:
        options = {"borderMode": borders[border], "borderValue": values}
        if places is not None:
            made = cv.remap(plane, *places, kinds[interpolation], **options)
        else:
            made = cv.warpPerspective(plane, matrix, (width, height), flags=flags, **options)
        np.copyto(target, made.reshape(target.shape))


def _places_of_far(
    matrix: np.ndarray,
    inverse: bool,
    extents: tuple[int, ...],
    height: int,
    width: int,
    period: Callable[[int], int],
) -> tuple[np.ndarray, np.ndarray] | None:
    """Columns and rows, float32 ``(height, width)``, within a period of the border.

    `None` where all of the output is near the image.

    OpenCV walks to a far place one period after the other: next to a horizon, where coordinates
    grow without limit, it would walk for hours.
    """
    if not inverse:
        if np.linalg.det(matrix) == 0:
            return None  # OpenCV takes zeros for its inverse
        matrix = np.linalg.inv(matrix)
    corners = np.array([[0, 0, 1], [width, 0, 1], [0, height, 1], [width, height, 1]], np.float64)
    x, y, depth = matrix @ corners.T
    if np.all(depth > 0) or np.all(depth < 0):
        reach = _NEAR_PERIODS * max(extents)
        if np.all(np.abs(x) < np.abs(depth) * reach) and np.all(np.abs(y) < np.abs(depth) * reach):
            return None
    columns, rows = np.arange(width, dtype=np.float64), np.arange(height, dtype=np.float64)[:, None]
    x, y, depth = (row[0] * columns + row[1] * rows + row[2] for row in matrix)
    scale = np.divide(1, depth, out=np.zeros_like(depth), where=depth != 0)
    with np.errstate(over="ignore", invalid="ignore"):
        found = [
            np.nan_to_num(np.mod(k * scale, period(extent))).astype(np.float32)
            for k, extent in zip((x, y), extents[::-1], strict=True)
        ]
    return found[0], found[1]
