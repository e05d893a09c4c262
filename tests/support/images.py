"""Small photographic images, made without any file."""

from __future__ import annotations

import io

import numpy as np
from PIL import Image


def picture(height: int, width: int, seed: int = 0) -> np.ndarray:
    """An RGB image with smooth areas, edges and some grain, uint8 HWC."""
    rng = np.random.default_rng(seed)
    y, x = np.mgrid[:height, :width] / max(height, width, 1)
    layers = []
    for _ in range(3):
        a, b, c = rng.uniform(2, 9, 3)
        wave = 0.5 + 0.3 * np.sin(a * x + c) + 0.2 * np.sign(np.sin(b * y - c))
        layers.append(wave)
    image = np.stack(layers, axis=-1) * 200 + rng.normal(20, 8, (height, width, 3))
    return np.clip(image, 0, 255).astype(np.uint8)


def encoded(
    height: int, width: int, seed: int = 0, format: str = "JPEG", **options: object
) -> np.ndarray:
    """The same image in a file format, as 1-D uint8."""
    buffer = io.BytesIO()
    options.setdefault("quality", 90)
    Image.fromarray(picture(height, width, seed)).save(buffer, format, **options)
    return np.frombuffer(buffer.getvalue(), np.uint8)


def class_folders(root, count: int, *, height: int = 60, width: int = 80) -> None:
    """Write `count` JPEGs into three class folders below `root`."""
    for number in range(count):
        folder = root / f"class{number % 3}"
        folder.mkdir(parents=True, exist_ok=True)
        data = encoded(height + number % 7, width - number % 5, seed=number)
        (folder / f"{number:03}.jpg").write_bytes(data.tobytes())
