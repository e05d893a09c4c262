"""Grain: loading alone, around functions of the user's."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

from benchmarks.compare import work
from benchmarks.support import by_hand

_DECODES_NOTHING = "it has no decoders; another library's would be what is measured"


def _batches(items: Any, function: Callable[..., None], shape: tuple[int, ...]) -> work.Batches:
    import grain

    def one(item: Any, rng: np.random.Generator) -> np.ndarray:
        out = np.empty(shape, np.float32)
        function(item, out, rng)
        return out

    data = grain.MapDataset.source(items).seed(0).shuffle().repeat().random_map(one)
    # 500 images with 16 threads when not told, which two processors do not need.
    reading = grain.ReadOptions(num_threads=2, prefetch_buffer_size=work.BATCH)
    workers = grain.MultiprocessingOptions(num_workers=work.WORKERS)
    for batch in data.to_iter_dataset(reading).batch(work.BATCH).mp_prefetch(workers):
        yield len(batch)


def _images(function: Callable[..., None]) -> Callable[[Path], work.Batches]:
    return lambda folder: _batches(work.images(folder), function, (3, 224, 224))


GRAIN = work.Library(
    ("grain", "opencv-python-headless", "simplejpeg"),
    {
        "train": _images(by_hand.train),
        "validate": _images(by_hand.validate),
        "augment": lambda f: _batches(work.decoded(f), by_hand.augment, (3, 256, 256)),
    },
    {"video": _DECODES_NOTHING, "audio": _DECODES_NOTHING},
    "functions by hand over simplejpeg, OpenCV and NumPy, two processes",
)
