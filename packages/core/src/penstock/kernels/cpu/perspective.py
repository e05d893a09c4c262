"""Images seen from elsewhere, by OpenCV."""

from __future__ import annotations

import numpy as np

from penstock.kernels.cpu.opencv import cv2

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

    Parameters
    ----------
    image
        uint8, uint16, int16 or float32: ``(H, W)``, ``(H, W, C)`` or, if `planar`, ``(C, H, W)``;
        with pixels. Images that are not planar have at most 4 channels.
    out
        Of the same type and channels, contiguous.
    matrix
        float64 ``(3, 3)``, of coordinates (x, y, 1) between centres of pixels.
    inverse
        Whether it maps places of `out` to those of `image`, and not the other way round.
    interpolation
        ``"nearest"``, ``"linear"`` or ``"cubic"``.
    border
        ``"constant"``, ``"replicate"``, ``"reflect"``, ``"reflect_101"`` or ``"wrap"``.
    fill
        What is outside if `border` is constant: one value, or one for each channel.
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
    for plane, target in zip(image, out, strict=True) if planar else [(image, out)]:
        height, width = target.shape[:2]
        made = cv.warpPerspective(
            plane,
            matrix,
            (width, height),
            flags=flags,
            borderMode=borders[border],
            borderValue=values,
        )
        np.copyto(target, made.reshape(target.shape))
