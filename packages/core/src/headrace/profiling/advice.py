"""Advice about a pipeline: a pure function of its figures."""

from __future__ import annotations

import math
from typing import NamedTuple

from headrace.profiling.figures import Figures

_FEWEST_BATCHES = 4
_HARDLY = 0.05
"""A consumer that waits for less of its time gains nothing from a faster pipeline."""
_BUSY = 0.8
"""Threads that work for more of their time have hardly any to spare."""
_MOST = 0.5
_MUCH = 0.3
_SOME = 0.15
_PADDED = 0.2
"""Share of padding in batches from which others are worth it."""


class Advice(NamedTuple):
    """One thing to do, or not to do."""

    kind: str
    """Kind of the advice, for programs: one of `KINDS`."""
    title: str
    """Recommended action, in a line."""
    why: str
    """The figures that say so."""
    how: str
    """Arguments to change."""


KINDS = (
    "measure-longer",
    "nothing-to-do",
    "busy-machine",
    "fewer-threads",
    "more-threads",
    "worker-processes",
    "decode-on-gpu",
    "more-prefetch",
    "slow-callback",
    "slow-source",
    "slow-disk",
    "slow-operator",
    "less-padding",
)


def advice_for(f: Figures) -> list[Advice]:
    """Return recommendations, the most useful first; never empty."""
    if f.batches < _FEWEST_BATCHES:
        return [_measure_longer(f)]
    return [*_about_time(f), *([_padding(f)] if f.padding > _PADDED else [])]


def _about_time(f: Figures) -> list[Advice]:
    if f.consumer_waits + f.consumer_asks < _HARDLY:
        found = [_nothing(f)]
        if _needed_threads(f) < f.threads and f.working > 0:
            found.append(_spare_threads(f))
        return found
    for rule in (_source, _callback, _others, _disk, _processes, _decoder, _threads, _prefetch):
        advice = rule(f)
        if advice is not None:
            return [advice]
    return [_operator(f)]


def _measure_longer(f: Figures) -> Advice:
    return Advice(
        "measure-longer",
        "Measure longer",
        f"{f.batches} batches after the first one are too few to tell anything.",
        f"Take at least {_FEWEST_BATCHES + 1}, better a hundred.",
    )


def _nothing(f: Figures) -> Advice:
    return Advice(
        "nothing-to-do",
        "Nothing: the pipeline waits for its consumer",
        f"The consumer waited for batches for {_percent(f.consumer_waits)} of the time, and was at "
        f"work with them for {_percent(f.consumer_works)}.",
        "To be faster, make the training step faster; the pipeline keeps up with it.",
    )


def _needed_threads(f: Figures) -> int:
    """Return the number of threads that would do the same work, with a fourth to spare."""
    return max(math.ceil(f.threads * f.working * 1.25), 1)


def _spare_threads(f: Figures) -> Advice:
    needed = _needed_threads(f)
    return Advice(
        "fewer-threads",
        f"Fewer {_kind(f)} would do: num_threads={needed}",
        f"{_count(f)} were at work for {_percent(f.working)} of the time.",
        f"Pipeline(num_threads={needed}) leaves processors to others, and is as fast.",
    )


def _source(f: Figures) -> Advice | None:
    if f.consumer_asks < _MUCH or f.consumer_asks < f.consumer_waits:
        return None
    return Advice(
        "slow-source",
        f"A slow source sets the pace: {f.source or 'the external source'}",
        f"It took {_percent(f.consumer_asks)} of the time, in the consumer's own thread.",
        "fn.external_source(..., parallel=True, batch=False) asks it in processes, beside the "
        "consumer: Pipeline(py_num_workers=...). Files are better left to a reader.",
    )


def _callback(f: Figures) -> Advice | None:
    if f.callbacks < _MOST:
        return None
    in_processes = f.workers == "processes"
    how = (
        "Use operators in place of it, or a compiled function "
        "(headrace.plugin.numba.fn.experimental.numba_function)"
    )
    return Advice(
        "slow-callback",
        f"A slow Python callback sets the pace: {f.callback}",
        f"Functions of yours ran for {_percent(f.callbacks)} of the time"
        f"{' of ' + _count(f) if in_processes else ', one after the other'}.",
        f"{how}; or take more processes: Pipeline(num_threads={2 * f.threads})."
        if in_processes
        else f'{how}; or have worker processes call it: Pipeline(workers="processes").',
    )


def _others(f: Figures) -> Advice | None:
    """Note that other programs use the processors: waits for files and for the interpreter may be
    waits for a processor then, so no further advice is given.
    """
    waits = f.processor_waits or 0.0
    if waits < _MUCH or f.processors_used > _MOST * f.processors:
        return None
    return _busy_machine(f, waits)


def _busy_machine(f: Figures, waits: float) -> Advice:
    return Advice(
        "busy-machine",
        "Other programs have the processors",
        f"{_count(f)} waited for a processor for {_percent(waits)} of their working time, and used "
        f"{f.processors_used:.1f} of {f.processors}.",
        "Measure again where processors are free: no setting of the pipeline makes up for them.",
    )


def _disk(f: Figures) -> Advice | None:
    if f.reading_waits < _MUCH:
        return None
    return Advice(
        "slow-disk",
        "Storage is slow: it is waited for",
        f"{_percent(f.reading_waits)} of the working time was spent waiting for files.",
        "Keep the data on a faster disk or nearer to the machine, or in fewer, larger files; else "
        f"more {_kind(f)} wait at the same time: num_threads={2 * f.threads}.",
    )


def _processes(f: Figures) -> Advice | None:
    if f.workers != "threads" or f.threads < 2 or f.interpreter_held is None:
        return None
    # The engine uses fewer threads where one more brings nothing, as here.
    if f.interpreter_held < 0.6 or f.working * f.threads < _BUSY or f.processors < 2:
        return None
    return Advice(
        "worker-processes",
        "Threads wait for one another's interpreter: take worker processes",
        f"Python's interpreter was in use {_percent(f.interpreter_held)} of the time, and "
        f"{f.threads} threads share it.",
        'Pipeline(workers="processes") gives each of them an interpreter of its own'
        + (
            " from the first batch on; the engine does so by itself in longer runs."
            if f.has_chosen_processes
            else "."
        ),
    )


def _decoder(f: Figures) -> Advice | None:
    if not f.has_gpu or f.decoding < 0.4 or f.working * f.threads < _BUSY:
        return None
    return Advice(
        "decode-on-gpu",
        f"Decode on the GPU: {f.decoder}",
        f"Decoding took {_percent(f.decoding)} of the working time, and there is a GPU.",
        'device="mixed" of the decoder has the GPU do it: fn.decoders.image(jpegs, '
        'device="mixed"), in a pipeline with a device_id.',
    )


def _threads(f: Figures) -> Advice | None:
    """More where they would find a processor, or wait for other things; fewer where not."""
    # Threads that are too many wait for a processor, or are left idle by the engine.
    waits = f.processor_waits or 0.0
    idle = f.working < _MOST and f.processors_used > _BUSY * f.processors
    if f.threads > f.processors and (waits > _MUCH or idle):
        return Advice(
            "fewer-threads",
            f"Fewer {_kind(f)}: num_threads={f.processors}",
            f"{_count(f)} share {f.processors} processors, of which they used "
            f"{f.processors_used:.1f}: they were at work for {_percent(f.working)} of the time, "
            f"and for {_percent(waits)} of that they waited for a processor.",
            f"Pipeline(num_threads={f.processors}).",
        )
    if f.working > _BUSY and f.processors_used < 0.75 * f.processors:
        if waits > _SOME:  # the processors that seem to be left are not
            return _busy_machine(f, waits)
        used = max(f.processors_used / max(f.threads, 1), 0.05)
        more = max(min(math.ceil(f.processors / used), 4 * f.threads), f.threads + 1)
        return Advice(
            "more-threads",
            f"More {_kind(f)}: num_threads={more}",
            f"{_count(f)} were at work for {_percent(f.working)} of the time, and used "
            f"{f.processors_used:.1f} of {f.processors} processors.",
            f"Pipeline(num_threads={more}).",
        )
    return None


def _prefetch(f: Figures) -> Advice | None:
    """Threads that have time to spare while the consumer waits: it comes in bursts."""
    if f.working > _BUSY or f.takes_that_waited > 0.9:
        return None
    return Advice(
        "more-prefetch",
        f"More prefetch: prefetch_queue_depth={2 * f.depth}",
        f"{_count(f)} were at work for {_percent(f.working)} of the time only, and yet the "
        f"consumer waited for {_percent(f.takes_that_waited)} of its batches: it takes them in "
        "bursts.",
        f"Pipeline(prefetch_queue_depth={2 * f.depth}) has more batches ready for the next burst, "
        "and takes memory for them.",
    )


def _operator(f: Figures) -> Advice:
    return Advice(
        "slow-operator",
        f"Most of the time goes to {f.slowest or 'the engine itself'}",
        f"The consumer waited for {_percent(f.consumer_waits)} of the time; {_count(f)} were at "
        f"work for {_percent(f.working)}, and used {f.processors_used:.1f} of {f.processors} "
        f"processors; {f.slowest or 'no operator'} took {_percent(f.slowest_share)} of it.",
        "Do less there (smaller images, fewer steps), move operators to a GPU, or use a machine "
        "with more processors.",
    )


def _padding(f: Figures) -> Advice:
    return Advice(
        "less-padding",
        "Batches of samples of about one length",
        f"{_percent(f.padding)} of what fn.pad makes is padding.",
        '`bucket_by` of the reader, as fn.readers.nemo_asr(..., bucket_by="duration"), makes '
        "batches of samples of about one length; `fn.readers.pack` makes rows of several samples.",
    )


def _count(f: Figures) -> str:
    if f.threads == 1:
        return "1 worker process" if f.workers == "processes" else "1 thread"
    return f"{f.threads} {_kind(f)}"


def _kind(f: Figures) -> str:
    return "worker processes" if f.workers == "processes" else "threads"


def _percent(share: float) -> str:
    return f"{100 * share:.0f} %"
