"""Figures derived from a pipeline's rows: shares, rates, and time by operator and thread."""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Any

import numpy as np

from headrace.profiling.recorder import Label, ProfileRecorder, Setup
from headrace.profiling.rows import SPAN

_WORK = ("operator", "reader", "callback")
_FREE_NANOSECONDS = 20_000
"""Longest wait for the interpreter that counts as finding it free; it takes a few microseconds."""
_PROCESS = "worker process "
"""Prefix of worker processes' lanes, from `ProfileRecorder.process`."""


@dataclass(slots=True)
class OperatorTime:
    """Time of an operator, in all threads and processes."""

    label: Label
    samples: int
    seconds: float
    """Of threads."""
    processor_seconds: float

    @property
    def microseconds_per_sample(self) -> float:
        """Time of a thread that a sample took."""
        return self.seconds * 1e6 / self.samples if self.samples else 0.0


@dataclass(slots=True)
class LaneTime:
    """Time of a thread or a worker process by activity, as shares of the whole time."""

    name: str
    working: float
    waiting_for_process: float = 0.0
    idle: float = 0.0
    processor: float = 0.0


@dataclass
class Figures:
    """Figures of a pipeline, over the time recorded after its first batch.

    Everything that advice is drawn from. Shares are within 0 .. 1.
    """

    batches: int = 0
    samples: int = 0
    seconds: float = 0.0
    """From the end of the wait for the first batch to the end of the wait for the last."""
    threads: int = 1
    workers: str = "threads"
    """Main carrier of the samples: ``"threads"`` or ``"processes"``."""
    has_chosen_processes: bool = False
    """True if the engine chooses processes by itself, in runs that are long enough."""
    processors: int = 1
    depth: int = 2
    batch_size: int = 0
    has_gpu: bool = False
    device: str = "cpu"
    consumer_waits: float = 0.0
    """Share of time in which the consumer waited for a batch."""
    consumer_asks: float = 0.0
    """Share of time in which the consumer's thread asked external sources."""
    consumer_works: float = 0.0
    """The rest: work on the batches."""
    ready: float = 0.0
    """Complete batches in the queue when the consumer asked, on average."""
    takes_that_waited: float = 0.0
    """Share of the batches for which the consumer waited."""
    working: float = 0.0
    """Share of their time that threads, or worker processes, carried samples."""
    processors_used: float = 0.0
    """Average number of processors at work for the pipeline."""
    reading: float = 0.0
    """Share of the threads' working time in readers, ..."""
    reading_waits: float = 0.0
    """... and the part of it in which no processor was used."""
    decoding: float = 0.0
    """Share of the working time in which images or audio were decoded on the CPU."""
    decoder: str = ""
    """The operator that decodes."""
    computing_waits: float = 0.0
    """Share of the working time in operators that do not read, in which no processor was used."""
    processor_waits: float | None = None
    """The part of the working time of threads, or worker processes, in which they waited for a
    processor; None where the system does not tell."""
    callbacks: float = 0.0
    """Share of time in which functions of the user's ran, one after the other; where worker
    processes ran them, of the time of all of these."""
    callback: str = ""
    """That which took longest."""
    source: str = ""
    """The external sources."""
    slowest: str = ""
    """The operator that took most of the threads' time, ..."""
    slowest_share: float = 0.0
    """... and its share of that."""
    interpreter_held: float | None = None
    """Share of requests that found the interpreter in use; None if it was not measured, or if
    worker processes carry the samples, each with an interpreter of its own."""
    operators: list[OperatorTime] = field(default_factory=list)
    lanes: list[LaneTime] = field(default_factory=list)
    padding: float = 0.0
    """Share of padding in what `fn.pad` has made, of samples padded to the largest of a batch."""
    pool_peak_bytes: int = 0
    """Most that pools of the host have lent, and kept."""
    device_peak_bytes: int = 0
    """Most that the GPU's pool has had."""
    resident_peak_bytes: int = 0
    queue: list[float] = field(default_factory=list)
    """Complete batches in the queue, over time: means of equal parts of it."""
    is_cut: bool = False
    """True if the beginning was dropped to limit the size."""

    @property
    def perfect_loader(self) -> str:
        """Sentence about what a loader would gain that never has the consumer wait."""
        waits = min(self.consumer_waits + self.consumer_asks, 0.999)
        if not self.batches:
            return ""
        times = 1 / (1 - waits)
        return (
            f"A perfect loader would save {100 * waits:.0f} % of the time of a step: "
            f"{times:.{0 if times >= 10 else 2}f} times as fast as now."
        )

    @property
    def samples_per_second(self) -> float:
        """Speed of the pipeline and its consumer together."""
        return self.samples / self.seconds if self.seconds else 0.0


def figures_of(recorder: ProfileRecorder) -> Figures:
    """The figures of a pipeline, which may still run."""
    setup, labels = recorder.setup, list(recorder.labels)
    lanes = {name: rows.array() for name, rows in list(recorder.lanes.items())}
    found = Figures(
        threads=setup.threads,
        workers=setup.workers,
        processors=setup.processors,
        depth=setup.depth,
        batch_size=setup.batch_size,
        has_gpu=setup.has_gpu,
        device=setup.device,
        is_cut=any(rows.is_cut for rows in recorder.lanes.values()),
    )
    kinds = np.array([label.kind for label in labels] or [""])
    consumer = lanes.pop("consumer", np.zeros(0, SPAN))
    takes = consumer[(kinds[consumer["code"]] == "take") & (consumer["iteration"] >= 0)]
    if len(takes) < 2:
        return found
    span = window_of(recorder, takes)
    takes = takes[(takes["end"] > span[0]) & (takes["end"] <= span[1])]
    seconds = found.seconds = (span[1] - span[0]) / 1e9
    found.batches = len(takes)
    found.padding = recorder.padding()
    _note_consumer(found, consumer, takes, kinds, labels, span)
    parts = {name: _within(rows, span) for name, rows in lanes.items()}
    everything = np.concatenate([*parts.values(), np.zeros(0, SPAN)])
    chunks = everything[kinds[everything["code"]] == "chunk"]
    found.samples = len(takes) * setup.batch_size
    by_stage: dict[str, int] = {}
    for code, samples in zip(chunks["code"].tolist(), chunks["samples"].tolist(), strict=True):
        by_stage[labels[code].name] = by_stage.get(labels[code].name, 0) + samples
    if by_stage:  # batches may be smaller than `batch_size`
        found.samples = min(found.samples, max(by_stage.values()))
    found.operators = _operators(everything, labels)
    _note_lanes(found, parts, kinds, setup)
    _note_shares(found, everything, kinds, labels)
    _note_looks(found, recorder.looks.array(), span)
    if seconds:
        busy = sum(float(rows["processor"].sum()) for rows in _outermost(parts, kinds))
        found.processors_used = busy / 1e9 / seconds
    return found


def window_of(recorder: ProfileRecorder, takes: np.ndarray) -> tuple[int, int]:
    """Begin and end of the measured time: the first batch, which starts everything, is left out."""
    begin = int(takes["end"][0])
    for rows in list(recorder.lanes.values()):
        if rows.is_cut:
            begin = max(begin, int(rows.array()["begin"][0]))
    return begin, int(takes["end"][-1])


def _within(rows: np.ndarray, span: tuple[int, int]) -> np.ndarray:
    """Return the rows of a span of time; rows partly in it are cut."""
    rows = rows[(rows["end"] > span[0]) & (rows["begin"] < span[1])].copy()
    length = np.maximum(rows["end"] - rows["begin"], 1)
    np.clip(rows["begin"], *span, out=rows["begin"])
    np.clip(rows["end"], *span, out=rows["end"])
    part = (rows["end"] - rows["begin"]) / length
    rows["processor"] = rows["processor"] * part
    return rows


def _seconds(rows: np.ndarray) -> float:
    return float((rows["end"] - rows["begin"]).sum()) / 1e9


def _note_consumer(
    found: Figures,
    consumer: np.ndarray,
    takes: np.ndarray,
    kinds: np.ndarray,
    labels: list[Label],
    span: tuple[int, int],
) -> None:
    seconds = found.seconds or 1.0
    asked = _within(consumer[kinds[consumer["code"]] == "source"], span)
    found.consumer_waits = min(_seconds(_within(takes, span)) / seconds, 1.0)
    found.consumer_asks = min(_seconds(asked) / seconds, 1.0)
    found.consumer_works = max(1.0 - found.consumer_waits - found.consumer_asks, 0.0)
    if len(asked):
        found.source = labels[int(asked["code"][0])].name
    if len(takes):
        found.ready = float(takes["samples"].mean())  # that column of a take: see the executor
        found.takes_that_waited = float((takes["samples"] == 0).mean())


def _operators(rows: np.ndarray, labels: list[Label]) -> list[OperatorTime]:
    """Time by operator, in the order of the pipeline; steps of one operator are added up."""
    count = len(labels)
    codes = rows["code"]
    samples = np.bincount(codes, rows["samples"], count)
    seconds = np.bincount(codes, (rows["end"] - rows["begin"]) / 1e9, count)
    used = np.bincount(codes, rows["processor"] / 1e9, count)
    made: dict[Any, OperatorTime] = {}
    for code, label in enumerate(labels):
        if label.kind not in _WORK or not seconds[code]:
            continue
        key = (label.number, label.name)
        known = made.get(key)
        if known is None:
            known = made[key] = OperatorTime(label, 0, 0.0, 0.0)
        known.samples += int(samples[code])
        known.seconds += float(seconds[code])
        known.processor_seconds += float(used[code])
    return sorted(made.values(), key=lambda o: o.label.number)


def _outermost(parts: dict[str, np.ndarray], kinds: np.ndarray) -> list[np.ndarray]:
    """Rows that lie in no others of their thread; their processor time adds up to all of it."""
    found = []
    for rows in parts.values():
        order = np.lexsort((-rows["end"], rows["begin"]))
        rows = rows[order]
        ends = np.maximum.accumulate(np.concatenate([[0], rows["end"]]))[:-1]
        found.append(rows[rows["end"] > ends] if len(rows) else rows)
    return found


def _note_lanes(
    found: Figures, parts: dict[str, np.ndarray], kinds: np.ndarray, setup: Setup
) -> None:
    seconds = found.seconds or 1.0
    outer = dict(zip(parts, _outermost(parts, kinds), strict=True))
    for name, rows in sorted(outer.items()):
        kind = kinds[rows["code"]]
        waits = min(_seconds(rows[kind == "process"]) / seconds, 1.0)
        works = min(_seconds(rows[kind != "process"]) / seconds, 1.0 - waits)
        used = float(rows["processor"].sum()) / 1e9 / seconds
        found.lanes.append(
            LaneTime(name, works, waits, max(1.0 - waits - works, 0.0), min(used, 1.0))
        )
    # Processes that the engine has chosen start late: until then, threads carry the samples.
    by_threads, by_processes = (
        sum(lane.working for lane in found.lanes if lane.name.startswith(begin))
        for begin in ("headrace-worker", _PROCESS)
    )
    if by_threads or by_processes:
        found.workers = "processes" if by_processes >= by_threads else "threads"
        found.has_chosen_processes = setup.workers == "processes"
    # Who never had anything to do has no rows; and processes may take the place of others.
    found.working = min((by_threads + by_processes) / max(found.threads, 1), 1.0)
    for name, rows in parts.items():
        called = _seconds(rows[kinds[rows["code"]] == "callback"]) / seconds
        found.callbacks += called / (found.threads if name.startswith(_PROCESS) else 1)
    found.callbacks = min(found.callbacks, 1.0)


def _note_shares(found: Figures, rows: np.ndarray, kinds: np.ndarray, labels: list[Label]) -> None:
    work = rows[np.isin(kinds[rows["code"]], _WORK)]
    whole = _seconds(work)
    if not whole:
        return
    kind = kinds[work["code"]]

    def waits(some: np.ndarray) -> float:
        return max(_seconds(some) - float(some["processor"].sum()) / 1e9, 0.0) / whole

    read = work[kind == "reader"]
    found.reading, found.reading_waits = _seconds(read) / whole, waits(read)
    found.computing_waits = waits(work[kind == "operator"])
    decodes = np.array([label.decodes and label.device == "cpu" for label in labels])
    found.decoding = _seconds(work[decodes[work["code"]]]) / whole
    slowest = max(found.operators, key=lambda o: o.seconds)
    found.slowest, found.slowest_share = slowest.label.name, slowest.seconds / whole
    for operator in sorted(found.operators, key=lambda o: o.seconds):
        if operator.label.kind == "callback":
            found.callback = operator.label.name
        if operator.label.decodes and operator.label.device == "cpu":
            found.decoder = operator.label.name


def _note_looks(found: Figures, looks: np.ndarray, span: tuple[int, int]) -> None:
    looks = looks[(looks["time"] >= span[0]) & (looks["time"] <= span[1])]
    if not len(looks):
        return
    found.pool_peak_bytes = int((looks["pool_used"] + looks["pool_idle"]).max())
    found.device_peak_bytes = int(looks["device_pool"].max())
    found.resident_peak_bytes = int(looks["resident"].max())
    waited = looks["interpreter_wait"]
    if found.workers == "threads" and (waited >= 0).any():
        found.interpreter_held = float((waited[waited >= 0] > _FREE_NANOSECONDS).mean())
    delays = looks["processor_wait"]
    worked = found.working * found.threads * found.seconds
    if delays[0] >= 0 and worked:
        waits = float(delays[-1] - delays[0]) / 1e9 / worked
        found.processor_waits = min(max(waits, 0.0), 1.0)
    parts = np.array_split(looks["ready"].astype(float), min(len(looks), 120))
    found.queue = [float(part.mean()) for part in parts]
