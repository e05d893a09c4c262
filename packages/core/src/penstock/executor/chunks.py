"""How many samples of a batch a thread takes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.executor.iteration import Iteration
    from penstock.executor.program import Program

_LARGEST = 8
_LARGEST_OF_LITTLE_WORK = 16
_READ = 16
"""Samples that are only read, for a GPU to decode: a thread takes no fewer. Shared out more finely,
all threads would do is to wait for one another."""
_LITTLE_WORK_SECONDS = 5e-5


def chunk_size(iteration: Iteration, program: Program, threads: int) -> int:
    """How many samples of `iteration` one of so many `threads` takes for `program`, at most."""
    if program.is_light:
        return max(_READ, -(-iteration.size // threads))
    little = program.sample_seconds < _LITTLE_WORK_SECONDS
    fair = (iteration.size - iteration.next) // (4 * threads) + 1
    return min(_LARGEST_OF_LITTLE_WORK if little else _LARGEST, fair)
