"""Sources for worker processes, which need not import TensorFlow."""

from __future__ import annotations

import os

import numpy as np

SAMPLES = 10


def numbered(info):
    """A sample: its number, and the process that made it."""
    if info.idx_in_epoch >= SAMPLES:
        raise StopIteration
    return np.array([info.idx_in_epoch, os.getpid()])
