"""A batch of images as one picture, each with its label."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

_GAP = 6
_CAPTION = 16


def write_contact_sheet(
    path: Path, images: np.ndarray, labels: Sequence[str], *, columns: int = 8
) -> None:
    """Write images (float or uint8, NCHW, RGB, levels 0 to 255) in rows of `columns` to a PNG."""
    count, _, height, width = images.shape
    rows = -(-count // columns)
    cell_h, cell_w = height + _CAPTION + _GAP, width + _GAP
    sheet = np.full((rows * cell_h + _GAP, columns * cell_w + _GAP, 3), 250, np.uint8)
    for number, (image, label) in enumerate(zip(images, labels, strict=True)):
        y = _GAP + number // columns * cell_h
        x = _GAP + number % columns * cell_w
        levels = np.clip(np.rint(image), 0, 255).astype(np.uint8)
        sheet[y : y + height, x : x + width] = levels.transpose(1, 2, 0)
        place = (x + 2, y + height + _CAPTION - 4)
        cv2.putText(
            sheet, label, place, cv2.FONT_HERSHEY_SIMPLEX, 0.4, (40, 40, 40), 1, cv2.LINE_AA
        )
    path.parent.mkdir(parents=True, exist_ok=True)
    if not cv2.imwrite(str(path), sheet[..., ::-1]):
        raise OSError(f"cannot write {path}")
