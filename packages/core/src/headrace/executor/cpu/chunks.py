"""Number of samples of a batch that a thread takes at once."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from headrace.executor.cpu.program import Program
    from headrace.executor.iteration import Iteration

_READ = 16
"""Samples that are only read, for a GPU to decode: a thread takes no fewer. Shared out more finely,
all threads would do is to wait for one another."""
_READ_QUICKLY = 32
"""The same where files come quickly: eight threads of an H200's host read a fifth more images a
second so than with 16 at a time, since threads that share an interpreter are woken half as often.
"""
_QUICK_READING_SECONDS = 2e-4
_WAIT_SECONDS = 5e-3
"""Waiting time for files from which on all threads share the reading."""
_LITTLE_WORK_SECONDS = 3e-4
"""Of samples that keep the processor for less, planning a chunk is a good part: it costs some 10
microseconds of the interpreter for a step, however many samples there are."""
_FEWEST_OF_LITTLE_WORK = 16
_WORTH_SHARING_SECONDS = 4e-4
"""Samples that take no longer together are one chunk, however many there are: a chunk costs the
interpreter some 100 microseconds, which threads cannot share."""
_LONG_WORK_SECONDS = 2e-3
"""Samples that take longer are shared out finely among threads."""
_WORTH_PLANNING = 10
"""Least ratio of the work of a chunk to its fixed cost; below it each thread gets one chunk instead
of two: auto_augment of 32 images took 13.3 ms of processor time that way, and 15.5 otherwise."""
_FEWEST, _FINELY, _MOST = 4, 8, 64
_CHUNK_SECONDS = 24e-3
"""So much work is worth planning a chunk, or a message to a worker process. Microseconds of a
processor a sample, by the samples of a chunk: audio on 16 cores of an H200's host 341 (16), 298
(32), 275 (64); on a core of an EPYC, while others used it, audio 278 (8), 190 (32), 175 (64),
training images 1460 (8), 1418 (16), 1371 (32). With eight threads that decode images of a
millisecond, no fewer than four at a time made a sixth more of them a second.
"""


def chunk_size(iteration: Iteration, program: Program, threads: int, batches: int = 1) -> int:
    """Return the largest number of samples of `iteration` that one of `threads` takes for
    `program`.
    """
    processor, size = max(program.processor_seconds, 1e-7), iteration.size
    own = min(max(program.own_seconds, 1e-7), processor)
    if program.is_pass_through:
        quick = program.sample_seconds < _QUICK_READING_SECONDS
        together = int(_WORTH_SHARING_SECONDS / max(program.sample_seconds, 1e-7))
        return max(_READ_QUICKLY if quick else _READ, -(-size // threads), together)
    is_little = own < _LITTLE_WORK_SECONDS
    finely = own > _LONG_WORK_SECONDS
    if is_little and program.sample_seconds >= _WAIT_SECONDS:
        is_little, finely = False, True
    worth = _FINELY if finely and not program.is_sent else int(_CHUNK_SECONDS / own)
    together = int(_WORTH_SHARING_SECONDS / processor)
    largest = max(min(max(worth, _FEWEST), _MOST), together)
    if threads == 1 and not program.is_sent:  # no other thread to share with
        return largest if finely else max(_MOST, together)
    fair = max((size - iteration.next) // (4 * threads) + 1, together)
    if program.is_sent or not finely:
        fewest = _FEWEST_OF_LITTLE_WORK if is_little else _FEWEST
        fair = max(fair, min(fewest, -(-size // (2 * threads))))
        if batches > 1:
            # All batches that may be in progress occupy all threads, or processes, and each has
            # another chunk to go on with. Where a source is asked for the next batch when the
            # oldest is complete, much of that is done already when others look for more: of 16
            # processes and fed batches of 128 images, 14.1 to 14.4 are busy with a depth of 2 and
            # 6 images a chunk (4: 14.3 to 14.7, which cost as much as they bring; 8: 13), with a
            # depth of 4 15.3 with 8 or 10 images and 15.0 with 14, with 6 15.3 with 12 or 16 and
            # 14.9 with 22.
            quarters = batches + 1 if program.is_sent and iteration.fed else 2 * batches
            fair = max(fair, quarters * size // (4 * threads))
            double = batches * size // threads
            if processor * fair < _WORTH_PLANNING * program.chunk_seconds and double <= largest:
                fair = max(fair, double)
    # Loops in which others help need not be shared out: there are so many fewer chunks.
    return min(largest, int(fair * (processor / own)))
