"""Plain WAV files, decoded by instructions: see `headrace.kernels.cpu.step_loops`.

Words: columns of the files' addresses and sizes; columns of the addresses and extents of their
samples, of the address of the rate, or -1, and of what the headers say; whether channels are
mixed; and the rate that files must have, or 0.
"""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.audio.wave_batch import decode_wave, survey_wave
from headrace.kernels.cpu.step_loops import columns_at, floats, words_at

HEADER_COLUMNS = 6


def plan(words_address: int, table: int, count: int, _: int) -> int:
    """Read the headers of all files; one that is not plain, or of another rate, is refused."""
    words, columns = words_at(words_address), columns_at(table, count)
    header, mixed, wanted = words[5], words[6] != 0, words[7]
    for k in range(count):
        address = np.uint64(columns[words[0], k])
        found, offset, frames, channels, rate, bits, is_float = survey_wave(
            address, columns[words[1], k]
        )
        if not found or (wanted != 0 and rate != wanted):
            return 1
        columns[header, k] = offset
        columns[header + 1, k] = frames
        columns[header + 2, k] = channels
        columns[header + 3, k] = rate
        columns[header + 4, k] = bits
        columns[header + 5, k] = is_float
        columns[words[3], k] = frames
        if not mixed:
            columns[words[3] + 1, k] = channels
    return 0


def carry(words_address: int, table: int, count: int, k: int) -> int:
    """Decode a file to float32."""
    words, columns = words_at(words_address), columns_at(table, count)
    header, mixed = words[5], words[6] != 0
    frames, channels = columns[header + 1, k], columns[header + 2, k]
    if words[4] >= 0:
        floats(columns[words[4], k], 1)[0] = np.float32(columns[header + 3, k])
    if frames == 0:
        return 0
    mixes = mixed and channels > 1
    target = floats(columns[words[2], k], frames if mixes else frames * channels)
    source = np.uint64(columns[words[0], k]) + np.uint64(columns[header, k])
    is_float = columns[header + 5, k] != 0
    decode_wave(source, frames, channels, columns[header + 4, k], is_float, mixes, target)
    return 0
