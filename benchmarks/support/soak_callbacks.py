"""Functions of the user's, for a soak. Processes that call them import this and nothing large."""

from __future__ import annotations

import random
from typing import Any

import numpy as np

BATCH = 4


class MishapError(Exception):
    """What callbacks raise."""


class Source:
    """Gives batches to an external source, and at times raises; ends an epoch after some."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)

    def __call__(self) -> list[np.ndarray]:
        """The next batch."""
        chance = self.random.random()
        if chance < 0.05:
            raise MishapError("the source")
        if chance < 0.1:
            raise StopIteration
        edge = self.random.randrange(16, 48)
        return [np.full((edge + k, 32, 3), k, np.uint8) for k in range(BATCH)]


def sample(info: Any) -> np.ndarray:
    """A sample of a source that is called in processes or threads of its own."""
    if info.idx_in_epoch % 97 == 96:
        raise MishapError("the parallel source")
    if info.iteration >= 40:
        raise StopIteration
    return np.full((40, 30, 3), info.idx_in_epoch % 256, np.uint8)


def function(image: np.ndarray) -> np.ndarray:
    """A function of the user's, which raises for some images."""
    if image.shape[0] == 47:
        raise MishapError("the function")
    return image[::-1].copy()
