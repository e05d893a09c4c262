"""The graph of a pipeline as SVG: operators, stages, what is merged, devices."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from html import escape
from pathlib import PurePath
from typing import NamedTuple

from headrace.cli.graph_layout import Box, layout
from headrace.executor.plan import Plan, make_plan
from headrace.graph.data_node import DataNode
from headrace.graph.fuse import merged_groups
from headrace.graph.nodes import OpNode
from headrace.pipeline import Pipeline
from headrace.pipeline.engine import placed

_LETTER, _ROW, _HEIGHT, _GAP, _EDGE = 7.4, 92, 52, 34, 26
LIGHT = {
    "paper": "#fbfaf8",
    "ink": "#1d2430",
    "soft": "#5a6473",
    "line": "#8b95a5",
    "band": "#f1efea",
    "cpu": "#d6e6fb",
    "gpu": "#d3f0df",
    "mixed": "#fbe8bd",
    "output": "#ffffff",
    "accent": "#b0468f",
}
_DARK = {
    "paper": "#14171c",
    "ink": "#e8eaee",
    "soft": "#a3adbb",
    "line": "#76808f",
    "band": "#1c2027",
    "cpu": "#1f3a5f",
    "gpu": "#1d4a33",
    "mixed": "#574314",
    "output": "#2a3039",
    "accent": "#dd83c0",
}
_LETTERS = """
svg{font-family:system-ui,-apple-system,"Segoe UI",Roboto,sans-serif}
text{font-size:13px;text-anchor:middle}text.soft,text.merged{font-size:11px}
text.band{font-size:12px;text-anchor:start}text.merged{font-weight:600}
.merged rect{stroke-width:2.5;stroke-dasharray:6 3}
path{fill:none;stroke-width:1.5}path.argument{stroke-dasharray:4 4}
""".strip()
_PAINT = """
svg{background:%(paper)s}rect.paper{fill:%(paper)s}text{fill:%(ink)s}text.soft{fill:%(soft)s}
text.band{fill:%(soft)s}text.merged{fill:%(accent)s}rect.band{fill:%(band)s}
.cpu rect{fill:%(cpu)s}.gpu rect{fill:%(gpu)s}.mixed rect{fill:%(mixed)s}
.output rect{fill:%(output)s;stroke:%(line)s}.merged rect{stroke:%(accent)s}path{stroke:%(line)s}
""".strip()
# Colours in plain words: not every program that draws SVG knows variables.
_STYLE = f"{_LETTERS}\n{_PAINT % LIGHT}\n@media (prefers-color-scheme:dark){{\n{_PAINT % _DARK}\n}}"


class Drawing(NamedTuple):
    """A drawing, and what is in it."""

    svg: str
    operators: int
    stages: int


class _Shown(NamedTuple):
    """A box, and what is written in it."""

    title: str
    below: str
    kind: str
    """``"cpu"``, ``"gpu"``, ``"mixed"`` or ``"output"``."""
    band: int
    merged: int = 0
    """Number of the group that it is merged with; 0 for none."""


def drawing_of(pipe: Pipeline) -> Drawing:
    """Draw the graph of a pipeline, which need not be built: nothing is opened, nothing runs."""
    nodes = pipe._definition.complete(pipe.define_graph)
    outputs = list(pipe._definition.outputs or ())
    nodes, outputs = placed(pipe._settings, nodes, outputs)
    plan = make_plan(nodes, outputs, {})
    groups = merged_groups(nodes, outputs) if pipe._settings.fuse else []
    number = {id(node): k for k, group in enumerate(groups, 1) for node in group}
    bands = _bands(plan)
    ordered = sorted(nodes, key=lambda node: bands[id(node)])
    shown = [
        _Shown(
            node.where().operator,
            _below(node),
            node.device,
            bands[id(node)],
            number.get(id(node), 0),
        )
        for node in ordered
    ]
    last = max(bands.values(), default=0) + 1
    shown += [_Shown(f"output {k}", "", "output", last) for k in range(len(outputs))]
    return Drawing(_svg(shown, _edges(ordered, outputs), plan), len(nodes), len(plan.stages))


def _bands(plan: Plan) -> dict[int, int]:
    """The band of each node, by its ``id``: sources, and then the stages."""
    found = {id(node): 0 for node in plan.nodes}
    for stage in plan.stages:
        for node in (*stage.sample_nodes, *stage.batch_nodes):
            if node.input_queue is None or stage.device != "cpu":
                found[id(node)] = stage.number + 1
    return found


def _edges(nodes: list[OpNode], outputs: list[DataNode]) -> list[tuple[int, int, str]]:
    """Edges between boxes, by their numbers; with the name of the argument that one is for."""
    place = {id(node): k for k, node in enumerate(nodes)}
    found: list[tuple[int, int, str]] = []
    for node in nodes:
        own = place[id(node)]
        found += [(place[id(e.source)], own, "") for e in node.inputs]
        found += [(place[id(e.source)], own, name) for name, e in node.tensor_args.items()]
        found += [(place[id(t.predicate.source)], own, "if") for t in node.guard]
    found += [(place[id(e.source)], len(nodes) + k, "") for k, e in enumerate(outputs)]
    return list(dict.fromkeys(found))


def _below(node: OpNode) -> str:
    line = PurePath(node.user_line.partition(" in ")[0]).name
    return f'"{node.name}" · {line}' if node.explicit_name else line


def _svg(shown: list[_Shown], edges: list[tuple[int, int, str]], plan: Plan) -> str:
    widths = [max(len(s.title) * _LETTER + 24, len(s.below) * 6.2 + 20, 76.0) for s in shown]
    placed = layout(widths, [(a, b) for a, b, _ in edges], [s.band for s in shown], _GAP)
    width = placed.width + 2 * _EDGE

    def y(box: Box) -> float:
        return _EDGE + 14 + box.row * _ROW

    def x(box: Box) -> float:
        return _EDGE + box.x

    parts = _band_parts(shown, placed.boxes, plan, width, y)
    for (_, _, argument), path in zip(edges, placed.paths, strict=True):
        parts.append(_path(path, argument, x, y))
    for s, box in zip(shown, placed.boxes, strict=True):
        parts.append(_box(s, box, x(box), y(box)))
    height = len(placed.rows) * _ROW + 2 * _EDGE - (_ROW - _HEIGHT) + 10
    count = sum(s.kind != "output" for s in shown)
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width:.0f} {height:.0f}" '
        f'width="{width:.0f}" height="{height:.0f}" role="img" aria-label="A pipeline of {count} '
        f'operators">\n<title>A pipeline of {count} operators</title>\n<style>{_STYLE}</style>\n'
        '<rect class="paper" width="100%" height="100%"/>\n' + "\n".join(parts) + "\n</svg>\n"
    )


def _band_parts(
    shown: list[_Shown],
    boxes: list[Box],
    plan: Plan,
    width: float,
    y: Callable[[Box], float],
) -> list[str]:
    parts = []
    for band in sorted({s.band for s in shown if s.kind != "output"}):
        own = [box for s, box in zip(shown, boxes, strict=True) if s.band == band]
        top = min(y(box) for box in own) - 24
        bottom = max(y(box) for box in own) + _HEIGHT + 8
        text = "sources: asked in the thread of your program"
        if band:
            stage = plan.stages[band - 1]
            text = f"stage {stage.number}: {_said(stage.device, bool(stage.sample_nodes))}"
        parts.append(
            f'<rect class="band" x="6" y="{top:.0f}" width="{width - 12:.0f}" '
            f'height="{bottom - top:.0f}" rx="8"/>'
            f'<text class="band" x="16" y="{top + 16:.0f}">{escape(text)}</text>'
        )
    return parts


def _said(device: str, by_sample: bool) -> str:
    if device == "cpu":
        return "each sample goes through all of it" if by_sample else "whole batches, on the CPU"
    return "decoders of the GPU" if device == "mixed" else "whole batches, on the GPU"


def _path(
    path: list[Box], argument: str, x: Callable[[Box], float], y: Callable[[Box], float]
) -> str:
    """An edge, which bends where it passes rows."""
    points = [(x(path[0]), y(path[0]) + _HEIGHT)]
    for bend in path[1:-1]:
        points += [(x(bend), y(bend)), (x(bend), y(bend) + _HEIGHT)]
    points.append((x(path[-1]), y(path[-1])))
    text = f"M{points[0][0]:.1f},{points[0][1]:.1f}"
    for (x0, y0), (x1, y1) in itertools.pairwise(points):
        middle = (y0 + y1) / 2
        text += f" C{x0:.1f},{middle:.1f} {x1:.1f},{middle:.1f} {x1:.1f},{y1:.1f}"
    if not argument:
        return f'<path d="{text}"/>'
    (x0, y0), (x1, y1) = points[-2:]
    place, line = (x0 + 3 * x1) / 4, (y0 + 3 * y1) / 4
    return (
        f'<path class="argument" d="{text}"/>{_backdrop(argument, place, line)}'
        f'<text class="soft" x="{place:.0f}" y="{line:.0f}">{escape(argument)}</text>'
    )


def _backdrop(text: str, x: float, y: float) -> str:
    """A rectangle that hides lines behind a text."""
    width = 6 * len(text) + 6
    return (
        f'<rect class="band" x="{x - width / 2:.0f}" y="{y - 11:.0f}" width="{width}" height="15"/>'
    )


def _box(s: _Shown, box: Box, x: float, y: float) -> str:
    left = x - box.width / 2
    merged = (
        _backdrop(f"merged, group {s.merged}", x, y + _HEIGHT + 13)
        + f'<text class="merged" x="{x:.0f}" y="{y + _HEIGHT + 13}">merged, group {s.merged}</text>'
        if s.merged
        else ""
    )
    title_y = y + (22 if s.below else 31)
    below = f'<text class="soft" x="{x:.0f}" y="{y + 40:.0f}">{escape(s.below)}</text>'
    return (
        f'<g class="{s.kind}{" merged" if s.merged else ""}"><rect x="{left:.1f}" y="{y:.0f}" '
        f'width="{box.width:.1f}" height="{_HEIGHT}" rx="9"/>'
        f'<text x="{x:.1f}" y="{title_y:.0f}">{escape(s.title)}</text>'
        f"{below if s.below else ''}</g>{merged}"
    )
