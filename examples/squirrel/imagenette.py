"""A data set like the one of Squirrel's tutorial on DALI, out of photographs that come with
scikit-image: images of 300 x 300 pixels and a label, in shards of MessagePack.

The tutorial stores float32 between 0 and 1; `uint8` stores the same images in a quarter of the
memory.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import cv2
import numpy as np
from squirrel.driver import MessagepackDriver

from examples.demo.photographs import photographs

EXTENT = 300


def images(count: int, seed: int = 0) -> list[tuple[np.ndarray, int]]:
    """Crops of photographs, float32 between 0 and 1, each with the number of its photograph."""
    rng = np.random.default_rng(seed)
    pictures = list(photographs().values())
    found = []
    for _ in range(count):
        label = int(rng.integers(len(pictures)))
        picture = pictures[label]
        height, width = picture.shape[:2]
        side = int(rng.integers(min(height, width) // 2, min(height, width)))
        top = int(rng.integers(height - side + 1))
        left = int(rng.integers(width - side + 1))
        crop = picture[top : top + side, left : left + side].astype(np.float32) / 255
        found.append((cv2.resize(crop, (EXTENT, EXTENT)), label))
    return found


def write_shards(folder: Path, samples: int, shards: int, *, dtype: str = "float32") -> Path:
    """Write a data set into `folder`, unless it is there already."""
    if len(list(folder.glob("*.gz"))) == shards:
        return folder
    folder.mkdir(parents=True, exist_ok=True)
    store: Any = MessagepackDriver(str(folder)).store
    for shard in range(shards):
        count = (shard + 1) * samples // shards - shard * samples // shards
        content = []
        for image, label in images(count, seed=shard):
            stored = np.rint(image * 255).astype(np.uint8) if dtype == "uint8" else image
            content.append({"image": stored, "label": np.array(label)})
        store.set(content, key=f"shard_{shard:04}")
    return folder
