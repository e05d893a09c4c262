"""How many samples of a batch a thread takes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.executor.cpu.program import Program
    from penstock.executor.iteration import Iteration

_LARGEST = 8
_LARGEST_OF_LITTLE_WORK = 32
_FEWEST = 4
_READ = 16
"""Samples that are only read, for a GPU to decode: a thread takes no fewer. Shared out more finely,
all threads would do is to wait for one another."""
_READ_QUICKLY = 32
"""The same where files come quickly: eight threads of an H200's host read a fifth more images a
second so than with 16 at a time, since threads that share an interpreter are woken half as often.
"""
_QUICK_READING_SECONDS = 2e-4
_LITTLE_WORK_SECONDS = 3e-4
"""Of samples that keep the processor for less, planning a chunk is a good part: it costs some 10
microseconds of the interpreter for a step, however many samples there are."""
_WAIT_SECONDS = 5e-3
"""Where files take so long to come, all threads had better share them."""
_FEWEST_OF_LITTLE_WORK = 16
_WORTH_SHARING_SECONDS = 4e-4
"""Samples that take no longer together are one chunk, however many there are: a chunk costs the
interpreter some 100 microseconds, which threads cannot share."""
_SHORT_WORK_SECONDS = 2e-3
"""A chunk costs some 15 microseconds of the interpreter; of work as short as this, single samples
are not worth it. With eight threads that decode images of a millisecond, on an H200's host, no
fewer than four at a time made a sixth more of them a second.
"""
_FEWEST_SENT = 4
_MOST_SENT = 64
_SENT_SECONDS = 24e-3
"""So much work is worth a message, and planning a chunk. On 16 cores of an H200's host, audio of a
fifth of a millisecond took 341 microseconds of a worker's processor a clip where 16 of them were
sent at a time, 298 with 32 and 275 with 64; images of 1.6 milliseconds gain nothing beyond 16."""


def chunk_size(iteration: Iteration, program: Program, threads: int, batches: int = 2) -> int:
    """How many samples of `iteration` one of so many `threads` takes for `program`, at most.

    Parameters
    ----------
    iteration, program, threads
        See above.
    batches
        How many are worked on at a time.
    """
    seconds = program.sample_seconds
    if program.is_light:
        fewest = _READ_QUICKLY if seconds < _QUICK_READING_SECONDS else _READ
        return max(fewest, -(-iteration.size // threads))
    is_little = program.processor_seconds < _LITTLE_WORK_SECONDS and seconds < _WAIT_SECONDS
    together = int(_WORTH_SHARING_SECONDS / max(program.processor_seconds, 1e-7))
    largest = max(_LARGEST_OF_LITTLE_WORK, together) if is_little else _LARGEST
    if threads == 1:
        return largest  # nobody to share with
    fair = (iteration.size - iteration.next) // (4 * threads) + 1
    if is_little:
        few = min(_FEWEST_OF_LITTLE_WORK, -(-iteration.size // (2 * threads)))
        fair = max(fair, few, together)
    elif seconds < _SHORT_WORK_SECONDS and iteration.size >= 4 * threads:
        fair = max(fair, min(_FEWEST, iteration.size // threads))
    if program.is_sent:
        worth = int(_SENT_SECONDS / max(program.processor_seconds, 1e-7))
        sent = min(max(worth, _FEWEST_SENT), _MOST_SENT)
        largest = max(largest, sent)
        # All batches that may be in progress occupy all processes, and each has another chunk to
        # go on with.
        fair = max(fair, min(sent, max(batches * iteration.size // (2 * threads), 1)))
    return min(largest, fair)
