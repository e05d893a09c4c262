"""The rows as trace events, for Perfetto (https://ui.perfetto.dev) and Chrome (about:tracing)."""

from __future__ import annotations

import json
from collections.abc import Iterator
from typing import Any

from headrace.profiling.recorder import Label, ProfileRecorder


def timeline(recorders: list[ProfileRecorder]) -> dict[str, Any]:
    """All that was recorded.

    A pipeline is a process of the timeline, each of its threads and worker processes a row;
    counters show the queue, memory, and the wait for the interpreter. Times are microseconds.
    """
    events: list[dict[str, Any]] = []
    for number, recorder in enumerate(recorders, 1):
        events.append(_name("process_name", number, 0, recorder.setup.name))
        for row, (name, rows) in enumerate(_lanes(recorder)):
            events.append(_name("thread_name", number, row, name))
            events.append(
                {
                    "ph": "M",
                    "name": "thread_sort_index",
                    "pid": number,
                    "tid": row,
                    "args": {"sort_index": row},
                }
            )
            events += _spans(rows.array(), list(recorder.labels), number, row)
        events += _counters(recorder, number)
    return {"traceEvents": events, "displayTimeUnit": "ms"}


def written(trace: dict[str, Any]) -> str:
    """The timeline as JSON, an event a line."""
    lines = ",\n".join(json.dumps(event, separators=(",", ":")) for event in trace["traceEvents"])
    return f'{{"displayTimeUnit":"{trace["displayTimeUnit"]}","traceEvents":[\n{lines}\n]}}\n'


def _lanes(recorder: ProfileRecorder) -> list[tuple[str, Any]]:
    """The consumer first, then threads, then worker processes."""
    order = {"consumer": 0}
    return sorted(
        recorder.lanes.copy().items(),
        key=lambda item: (order.get(item[0], 1 + item[0].startswith("worker process")), item[0]),
    )


def _name(what: str, pid: int, tid: int, name: str) -> dict[str, Any]:
    return {"ph": "M", "name": what, "pid": pid, "tid": tid, "args": {"name": name}}


def _spans(rows: Any, labels: list[Label], pid: int, tid: int) -> Iterator[dict[str, Any]]:
    for code, iteration, samples, first, begin, end, processor in rows.tolist():
        label = labels[code]
        what = {"ready": samples, "queued": first} if label.kind == "take" else {}
        if not what:
            what = {"samples": samples, "first": first}
        yield {
            "ph": "X",
            "name": label.name,
            "cat": label.kind,
            "pid": pid,
            "tid": tid,
            "ts": begin / 1e3,
            "dur": (end - begin) / 1e3,
            "args": {"batch": iteration, **what, "processor_us": processor / 1e3},
        }


def _counters(recorder: ProfileRecorder, pid: int) -> Iterator[dict[str, Any]]:
    for look in recorder.looks.array().tolist():
        time, queued, ready, used, idle, device, resident, waited, _ = look
        shown: dict[str, dict[str, float]] = {
            "batches": {"ready": ready, "in progress": queued - ready},
            "host pools (MB)": {"in use": used / 1e6, "idle": idle / 1e6},
            "resident memory (MB)": {"resident": resident / 1e6},
        }
        if recorder.setup.device == "gpu":
            shown["memory pool of the GPU (MB)"] = {"held": device / 1e6}
        if waited >= 0:
            shown["wait for the interpreter (ms)"] = {"waited": waited / 1e6}
        for name, values in shown.items():
            yield {"ph": "C", "name": name, "pid": pid, "ts": time / 1e3, "args": values}
