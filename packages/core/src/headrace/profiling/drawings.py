"""Pictures of the page, as SVG: the queue over time, and what threads did during a few batches."""

from __future__ import annotations

from html import escape
from typing import Any

import numpy as np

from headrace.profiling.figures import Figures
from headrace.profiling.recorder import ProfileRecorder

_WIDTH = 1000
_BATCHES = 4
_MOST_SPANS = 1500
COLOURS = 10
"""Colours that the style sheet has for operators."""


def queue_drawing(figures: Figures) -> str:
    """Draw the number of complete batches that waited for the consumer, over time."""
    values = figures.queue
    top = max([*values, float(figures.depth), 1.0])
    height, left = 120, 34
    width = _WIDTH - left - 6
    step = width / max(len(values) - 1, 1)

    def at(k: int, value: float) -> str:
        return f"{left + k * step:.1f},{height - 8 - (height - 24) * value / top:.1f}"

    line = " ".join(at(k, v) for k, v in enumerate(values))
    area = f"{at(0, 0)} {line} {at(max(len(values) - 1, 0), 0)}"
    levels = sorted({0, round(top)})
    marks = "".join(
        f'<line x1="{left}" x2="{_WIDTH - 6}" y1="{at(0, v).split(",")[1]}" '
        f'y2="{at(0, v).split(",")[1]}" stroke="var(--line)"/>'
        f'<text x="{left - 8}" y="{float(at(0, v).split(",")[1]) + 4:.1f}" '
        f'text-anchor="end">{v}</text>'
        for v in levels
    )
    mean = sum(values) / len(values) if values else 0.0
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="Complete batches in the '
        f'queue over time: {mean:.1f} on average">{marks}'
        f'<polygon points="{area}" fill="var(--c0)" opacity=".22"/>'
        f'<polyline points="{line}" fill="none" stroke="var(--c0)" stroke-width="2"/></svg>'
    )


def threads_drawing(recorder: ProfileRecorder, colours: dict[str, int]) -> str:
    """Draw the work of each thread and worker process during a few batches in the middle."""
    labels = list(recorder.labels)
    lanes = {name: rows.array() for name, rows in list(recorder.lanes.items())}
    consumer = lanes.get("consumer")
    if consumer is None or len(consumer) < 2:
        return ""
    kinds = np.array([label.kind for label in labels])
    ends = consumer["end"][kinds[consumer["code"]] == "take"]
    if len(ends) < 2:
        return ""
    first = max((len(ends) - 1 - _BATCHES) // 2, 0)
    last = min(first + _BATCHES, len(ends) - 1)
    begin, end = int(ends[first]), int(ends[last])
    names = ["consumer", *sorted(n for n in lanes if n != "consumer" and len(lanes[n]))]
    left, row, gap = 172, 22, 8
    width = _WIDTH - left - 6
    height = len(names) * (row + gap) + 26
    scale = width / max(end - begin, 1)
    parts = []
    for k, name in enumerate(names):
        y = k * (row + gap) + 2
        parts.append(
            f'<text x="{left - 8}" y="{y + 15}" text-anchor="end">{escape(name)}</text>'
            f'<rect x="{left}" y="{y}" width="{width}" height="{row}" fill="var(--track)"/>'
        )
        rows = lanes[name]
        rows = rows[(rows["end"] > begin) & (rows["begin"] < end)]
        # What lies within others is drawn upon them.
        rows = rows[np.argsort(rows["begin"] - rows["end"], kind="stable")][:_MOST_SPANS]
        parts += [
            _span(span, labels, colours, begin, end, scale, left, y, row) for span in rows.tolist()
        ]
    for take in ends[first : last + 1].tolist():
        x = left + (take - begin) * scale
        parts.append(
            f'<line x1="{x:.1f}" x2="{x:.1f}" y1="0" y2="{height - 22}" stroke="var(--ink)" '
            'stroke-dasharray="3 3" opacity=".5"/>'
        )
    milliseconds = (end - begin) / 1e6
    parts.append(
        f'<text x="{left}" y="{height - 6}">0 ms</text>'
        f'<text x="{_WIDTH - 6}" y="{height - 6}" text-anchor="end">{milliseconds:.1f} ms</text>'
    )
    return (
        f'<svg viewBox="0 0 {_WIDTH} {height}" role="img" aria-label="What threads did during '
        f'{last - first} batches, {milliseconds:.1f} milliseconds">{"".join(parts)}</svg>'
    )


def _span(
    span: Any,
    labels: list[Any],
    colours: dict[str, int],
    begin: int,
    end: int,
    scale: float,
    left: int,
    y: int,
    row: int,
) -> str:
    code, _, samples, _, since, until, _ = span
    label = labels[code]
    if label.kind == "chunk":
        return ""
    fill = {"take": "var(--waits)", "process": "var(--waits)", "source": "var(--asks)"}.get(
        label.kind, "var(--c9)"
    )
    if label.name in colours:
        fill = f"var(--c{colours[label.name] % COLOURS})"
    since, until = max(since, begin), min(until, end)
    count = "" if label.kind in ("take", "engine") else f", {samples} samples"
    title = f"{label.name}: {(until - since) / 1e6:.2f} ms{count}"
    return (
        f'<rect x="{left + (since - begin) * scale:.1f}" y="{y}" '
        f'width="{max((until - since) * scale, 0.4):.1f}" height="{row}" fill="{fill}">'
        f"<title>{escape(title)}</title></rect>"
    )
