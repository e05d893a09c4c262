"""Samples normalised by moments of their own, by instructions: see
`headrace.kernels.cpu.step_loops`.

Words: columns of the address and of the first extent of the samples, and their axes; the same of
the outputs; the first axis that moments are taken along, and the one after the last; `ddof`; and
`epsilon`, `scale` and `shift`. All numbers are float32.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.normalize_loops import normalize_sample
from headrace.kernels.cpu.step_loops import columns_at, floats, reals_at, volume, words_at


def carry(words_address: int, table: int, count: int, k: int) -> int:
    """Normalise one sample."""
    words, reals = words_at(words_address), reals_at(words_address)
    columns = columns_at(table, count)
    outer = volume(columns, words[1], words[6], k)
    reduced = volume(columns, words[1] + words[6], words[7] - words[6], k)
    inner = volume(columns, words[1] + words[7], words[2] - words[7], k)
    size = outer * reduced * inner
    if size == 0:
        return 0
    groups = outer * inner
    normalize_sample(
        floats(columns[words[0], k], size),
        outer,
        reduced,
        inner,
        words[8],
        reals[9],
        reals[10],
        np.float32(reals[11]),
        floats(columns[words[3], k], size),
        np.empty(groups, np.float64),
        np.empty((2, groups), np.float32),
    )
    return 0
