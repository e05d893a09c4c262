"""Labels of a program's steps in a profile."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.profiling.recorder import Label

if TYPE_CHECKING:
    from headrace.executor.cpu.program import Program
    from headrace.executor.gpu.program import GpuProgram
    from headrace.executor.step import Step
    from headrace.graph.nodes import OpNode


def label_of(node: OpNode, number: int, note: str = "", *, decodes: bool = False) -> Label:
    """The label of an operator, which has `number` in the pipeline."""
    schema = node.schema
    kind = "reader" if schema.reader else "callback" if schema.calls_user else "operator"
    where = node.where()
    name = f'{where.operator} "{node.name}"' if node.explicit_name else where.operator
    return Label(
        name,
        kind,
        number,
        node.user_line,
        note,
        node.device,
        decodes or _is_decoder(schema.name),
    )


def labels_of(program: Program) -> list[Label]:
    """Labels of the steps of a stage on the CPU, in their order, and then of a chunk."""
    numbers = {id(node): k for k, node in enumerate(program.plan.nodes)}
    decoding: set[int] = set()
    """Registers with lazy values that are decoded where they are read."""
    found = []
    for step in program.steps:
        number = numbers.get(id(step.node), -1)
        decodes = any(r in decoding for r in step.inputs)
        note = ""
        if step.is_lazy:
            note = "computed within the operator after it"
            if decodes or _is_decoder(step.node.schema.name):
                decoding.update(step.outputs)
        elif decodes:
            note = "with the decoding before it"
        label = label_of(step.node, number, note, decodes=decodes)
        if label.kind == "reader" and not step.is_reader:  # its parser
            label = label._replace(kind="operator", name=f"{label.name} (parsing)")
        found.append(label)
    return [*found, Label(f"samples of stage {program.stage.number}", "chunk")]


def launch_labels(program: GpuProgram) -> list[Label]:
    """Labels of the steps of a stage on a GPU, and then of all of them."""
    numbers = {id(node): k for k, node in enumerate(program.plan.nodes)}
    stage = program.stage
    return [
        *(
            label_of(node, numbers.get(id(node), -1), "its launch, not its work")
            for node in program.nodes
        ),
        Label(f"launch stage {stage.number} ({stage.device})", "launch", device="gpu"),
    ]


def codes_of(program: Program, base: int) -> dict[int, int]:
    """Codes of the steps of a program, by their ``id``, where the first has the code `base`."""
    return {id(step): base + k for k, step in enumerate(program.steps)}


def batch_labels(step: Step, nodes: list[Any]) -> list[Label]:
    """The label of an operator that works on whole batches."""
    number = next((k for k, node in enumerate(nodes) if node is step.node), -1)
    return [label_of(step.node, number, "on whole batches")]


def whole_labels(program: Program) -> list[Label]:
    """The label of all that is worked out for whole batches, before their first sample."""
    nodes = [step.node for step in program.whole_steps]
    number = next((k for k, node in enumerate(program.plan.nodes) if node is nodes[0]), -1)
    name = ", ".join(dict.fromkeys(node.where().operator for node in nodes))
    lines = ", ".join(dict.fromkeys(node.user_line for node in nodes))
    note = "for whole batches, and memory for the others"
    return [Label(name, "operator", number, lines, note)]


def _is_decoder(name: str) -> bool:
    return name.startswith(("decoders.", "experimental.decoders."))
