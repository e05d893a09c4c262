"""Printed form of a pipeline: its settings in a line, its operators as a table."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Protocol

from headrace.graph.data_node import DataNode
from headrace.graph.nodes import OpNode
from headrace.operators.support.schema import Spec
from headrace.tensors import _html

if TYPE_CHECKING:
    from headrace.pipeline.engine import Engine
    from headrace.pipeline.graph_definition import GraphDefinition
    from headrace.pipeline.settings import Settings


class Printable(Protocol):
    """A `Pipeline`, as far as it is printed."""

    _settings: Settings
    _definition: GraphDefinition
    _engine: Engine | None


HEADER = ("#", "operator", "device", "inputs", "outputs", "created at")


def pipeline_line(pipeline: Printable) -> str:
    """``Pipeline(batch_size=64, ...)``, on one line; nothing is built for it."""
    settings = pipeline._settings
    parts = [
        f"batch_size={settings.batch_size}",
        f"num_threads={settings.num_threads}",
        f"device_id={settings.device_id}",
    ]
    if settings.seed is not None:
        parts.append(f"seed={settings.seed}")
    outputs = pipeline._definition.outputs
    if outputs is not None:
        parts.append(f"operators={len(_nodes(pipeline))}")
        parts.append(f"outputs={len(outputs)}")
    parts.append(f"built={pipeline._engine is not None}")
    return f"{type(pipeline).__name__}({', '.join(parts)})"


def pipeline_text(pipeline: Printable) -> str:
    """The line, and below it the table as text."""
    rows = [HEADER, *operator_rows(pipeline)]
    if len(rows) == 1:
        return pipeline_line(pipeline)
    widths = [max(len(row[k]) for row in rows) for k in range(len(HEADER))]
    lines = [
        "  ".join(cell.ljust(width) for cell, width in zip(row, widths, strict=True)).rstrip()
        for row in rows
    ]
    return "\n".join([pipeline_line(pipeline), *(f"  {line}" for line in lines)])


def pipeline_html(pipeline: Printable) -> str:
    """The same for notebooks."""
    return _html.table(pipeline_line(pipeline), HEADER, operator_rows(pipeline))


def operator_rows(pipeline: Printable) -> list[tuple[str, ...]]:
    """A row for each operator: see `HEADER`.

    Of a pipeline that was built, these are the operators that run, copies between devices among
    them. Types are known from the first batch on, and shapes of what the pipeline returns.
    """
    nodes = _nodes(pipeline)
    specs: Mapping[tuple[int, int], Spec] = {}
    returned: dict[tuple[int, int], str] = {}
    engine = pipeline._engine
    if engine is not None:
        executor = engine.executor
        registers, known = executor.plan.registers, executor.known_specs()
        specs = {key: known[r] for key, r in registers.items() if r in known}
        shapes = dict(zip(executor.plan.outputs, engine.first_shapes, strict=False))
        returned = {key: shapes.get(r, "") for key, r in registers.items()}
    numbers = {id(node): number for number, node in enumerate(nodes)}
    return [
        (
            str(number),
            _operator(node),
            node.device,
            _inputs(node, numbers),
            ", ".join(
                _edge(specs.get((id(node), k)), returned.get((id(node), k), ""))
                for k in range(len(node.outputs))
            ),
            node.user_line,
        )
        for number, node in enumerate(nodes)
    ]


def output_texts(pipeline: Printable) -> list[str]:
    """Type, layout, shape and device of each output, as far as they are known."""
    engine, outputs = pipeline._engine, pipeline._definition.outputs or ()
    if engine is None:
        return ["?"] * len(outputs)
    known, registers = engine.executor.known_specs(), engine.executor.plan.outputs
    shapes = [*engine.first_shapes, *([""] * len(registers))]
    return [
        f"{_edge(known.get(r), shape)} on the {edge.device}"
        for r, shape, edge in zip(registers, shapes, outputs, strict=False)
    ]


def _nodes(pipeline: Printable) -> list[OpNode]:
    if pipeline._engine is not None:
        return pipeline._engine.executor.plan.nodes
    return pipeline._definition.needed()


def _operator(node: OpNode) -> str:
    text = node.schema.written or f"fn.{node.schema.name}"
    return f'{text} "{node.name}"' if node.explicit_name else text


def _inputs(node: OpNode, numbers: Mapping[int, int]) -> str:
    def shown(edge: DataNode) -> str:
        assert edge.source is not None
        text = str(numbers.get(id(edge.source), "?"))
        return text if len(edge.source.outputs) == 1 else f"{text}[{edge.index}]"

    named = [f"{name}={shown(edge)}" for name, edge in sorted(node.tensor_args.items())]
    return ", ".join([*(shown(edge) for edge in node.inputs), *named])


def _edge(spec: Spec | None, shape: str) -> str:
    if spec is None:
        return "?"
    parts: list[Any] = [spec.dtype.name, spec.layout, shape]
    return " ".join(part for part in parts if part)
