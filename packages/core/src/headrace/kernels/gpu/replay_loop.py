"""The driver's calls of an iteration that was recorded, by compiled code."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.pointers import call_at
from headrace.kernels.plan.compiled import compiled

COMMAND_WORDS = 9
"""Words of a command. Of a launch: the kernel; blocks and threads, three words each; bytes of
shared memory; the address of the addresses of its arguments. Of a copy: 0, bytes, and the number of
the word with its target, which its source follows."""


@compiled
def place(
    words: np.ndarray,
    sent: np.ndarray,
    spans: np.ndarray,
    positions: np.ndarray,
    blocks: np.ndarray,
    away: np.ndarray,
) -> None:
    """Write the words that change to `sent`: spans that were filled, and addresses.

    `blocks`: for the word at each of `positions`, which block it is an address in; `away`: bytes
    that each block is away from where `words` say.
    """
    for k in range(len(spans)):
        for i in range(spans[k, 0], spans[k, 1]):
            sent[i] = words[i]
    for k in range(len(positions)):
        sent[positions[k]] = words[positions[k]] + np.uint64(away[blocks[k]])


@compiled
def submit(
    words: np.ndarray,
    table_bytes: int,
    device_tables: int,
    at_once_bytes: int,
    commands: np.ndarray,
    copy_entry: int,
    launch_entry: int,
    stream: int,
) -> int:
    """Upload the tables, and launch; return the driver's status, 0 if it took everything."""
    zero = np.uint64(0)
    begin = np.uint64(words.ctypes.data)
    done = 0
    while done < table_bytes:
        size = min(table_bytes - done, at_once_bytes)
        part = np.uint64(done)
        target = np.uint64(device_tables) + part
        status = call_at(
            np.uint64(copy_entry), (target, begin + part, np.uint64(size), np.uint64(stream))
        )
        if status:
            return status
        done += size
    for k in range(len(commands)):
        c = commands[k]
        if c[0]:
            status = call_at(
                np.uint64(launch_entry),
                (c[0], c[1], c[2], c[3], c[4], c[5], c[6], c[7], np.uint64(stream), c[8], zero),
            )
        else:
            place = np.int64(c[2])
            status = call_at(
                np.uint64(copy_entry), (words[place], words[place + 1], c[1], np.uint64(stream))
            )
        if status:
            return status
    return 0
