"""Decoders on the CPU that make, and send to the GPU, only what an operator there looks at.

It is what deferred pixels are within a stage of the CPU (see `penstock.operators.deferred`), across
the copy to the GPU. What is wanted of an image must be known before it is there, so the operator
on the GPU is asked in advance, with the random numbers that it is going to draw: these depend on
seed, iteration and sample alone.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from penstock.executor.frames import FrameLoop
from penstock.executor.inputs import checked
from penstock.executor.step import Step

if TYPE_CHECKING:
    import numpy as np

    from penstock.executor.context import Context
    from penstock.executor.plan import Plan
    from penstock.graph.nodes import OpNode
    from penstock.operators.schema import Spec


def part_uploads(plan: Plan, steps: list[Step], specs: dict[int, Spec]) -> list[int]:
    """Let steps make parts where only these are looked at; the registers that hold them then."""
    found = []
    for step in steps:
        if len(step.outputs) != 1 or isinstance(step.op, FrameLoop):
            continue
        r = step.outputs[0]
        if not (hasattr(step.op, "decode_part") and plan.uploaded[r]):
            continue
        reader = _only_reader(plan, _only_reader(plan, step.node))
        behind = None if reader is None else _step_behind(plan, reader, specs[r])
        if behind is not None:
            step.behind = behind
            step.function = _PartDecoder(step.op, behind.op)
            found.append(r)
    return found


class _PartDecoder:
    """The function of a step that decodes what the one behind it reads."""

    def __init__(self, decoder: Any, reader: Any) -> None:
        self._decode = decoder.decode_part
        self._reads = reader.reads

    def __call__(self, c: Context, encoded: np.ndarray) -> np.ndarray:
        behind, buffer = c.behind, c.buffers[0]
        assert behind is not None
        assert buffer is not None
        assert buffer.parts is not None
        behind.index = c.index

        def chosen(shape: tuple[int, ...]) -> Any:
            try:
                return self._reads(behind, shape)
            except Exception:  # it will raise again, and be located where it runs
                return 0, 0, *shape[:2]

        pixels: np.ndarray
        pixels, buffer.parts[c.index] = self._decode(c, encoded, chosen)
        return pixels


def _only_reader(plan: Plan, node: OpNode | None) -> OpNode | None:
    """What reads the output of `node`, as its only input, if it is all that does."""
    if node is None or plan.consumers[plan.register(node.outputs[0])] != 1:
        return None
    edge = node.outputs[0]
    for reader in plan.nodes:
        if len(reader.inputs) == 1 and plan.register(reader.inputs[0]) == plan.register(edge):
            return reader
    return None


def _step_behind(plan: Plan, node: OpNode, spec: Spec) -> Step | None:
    """What the operator of `node`, on the GPU, would do to one sample; `None` if it cannot tell."""
    cls: Any = node.schema.cls
    if node.device != "gpu" or node.tensor_args or not hasattr(cls, "reads"):
        return None
    if spec.layout != "HWC":
        return None
    try:
        op = cls(node.args, {})
        op.infer(checked(node.schema, 0, spec))
    except Exception:  # it will raise again, and be located where it runs
        return None
    return Step(
        node=node,
        op=op,
        function=op.reads,
        inputs=(),
        outputs=(),
        leaving=(),
        tensor_args=(),
        args=vars(op.args),
        seed=plan.seeds.get(id(node), 0),
        is_reader=False,
    )
