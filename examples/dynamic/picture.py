"""Spectrograms as a picture."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

import cv2
import numpy as np

_GAP = 8
_ZOOM = 3
_CAPTION = 18


def write_spectrograms(path: Path, spectrograms: Sequence[np.ndarray], labels: list[str]) -> None:
    """Write spectrograms side by side to a PNG, low frequencies at the bottom.

    Parameters
    ----------
    path
        The file.
    spectrograms
        Real, ``(bands, frames)``, all of one height; each is shown between its own extremes.
    labels
        What is written below each.
    """
    columns = [_column(s, label) for s, label in zip(spectrograms, labels, strict=True)]
    gap = np.full((columns[0].shape[0], _GAP, 3), 255, np.uint8)
    row = np.concatenate([part for column in columns for part in (gap, column)] + [gap], axis=1)
    path.parent.mkdir(parents=True, exist_ok=True)
    if not cv2.imwrite(str(path), row):
        raise OSError(f"cannot write {path}")


def _column(spectrogram: np.ndarray, label: str) -> np.ndarray:
    low, high = float(spectrogram.min()), float(spectrogram.max())
    levels = (spectrogram[::-1] - low) * (255 / max(high - low, 1e-9))
    size = (levels.shape[1] * _ZOOM, levels.shape[0] * _ZOOM)
    levels = cv2.resize(levels.astype(np.uint8), size, interpolation=cv2.INTER_NEAREST)
    picture = cv2.applyColorMap(levels, cv2.COLORMAP_MAGMA)
    picture = cv2.copyMakeBorder(
        picture, _GAP, _CAPTION, 0, 0, cv2.BORDER_CONSTANT, value=(255, 255, 255)
    )
    place = (2, picture.shape[0] - 5)
    cv2.putText(picture, label, place, cv2.FONT_HERSHEY_SIMPLEX, 0.45, (40, 40, 40), 1, cv2.LINE_AA)
    return picture
