"""Videos that are read or fed for a GPU that has decoders: the CPU describes frames, which the GPU
decodes.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.graph.data_node import DataNode
from headrace.graph.nodes import OpNode
from headrace.operators.readers.video_description import DESCRIBES
from headrace.operators.support.registry import find
from headrace.types import DALIImageType

if TYPE_CHECKING:
    from headrace.operators.support.schema import OpSchema


Steps = list[tuple[str, str, dict[str, Any]]]
"""Operators: name, device and arguments of each."""


def decodes(node: OpNode, wanted: set[str]) -> bool:
    """Return True if a GPU's decoders make the first output of a reader, which is wanted there.

    `wanted` are the devices that read the output.
    """
    return node.schema.reader and wanted == {"gpu"} and can_decode(node.schema, node.args)


def decodes_fed(node: OpNode) -> bool:
    """Return True if a GPU's decoders make frames of videos that are fed to `node`."""
    schema = node.schema
    return schema.fed and node.device == "mixed" and can_decode(schema, node.args)


def can_decode(schema: OpSchema, args: Mapping[str, Any]) -> bool:
    """Return True if there are decoders that make the first output of an operator."""
    return steps(schema, args) is not None and _has_decoders()


def _has_decoders() -> bool:
    from headrace.kernels.gpu.nvdec.session import is_wanted  # which needs Numba

    return is_wanted()


def describing(schema: OpSchema, args: Mapping[str, Any]) -> dict[str, Any]:
    """Arguments of the same operator, which describes frames."""
    found = {**args, DESCRIBES: True}
    if schema.given_readers is not None:
        found["readers"] = tuple(
            {**each, "arguments": describing(find(each["operator"]), each["arguments"])}
            for each in schema.given_readers(args)
        )
    return found


def steps(schema: OpSchema, args: Mapping[str, Any]) -> Steps | None:
    """The operators that make frames of what is described; `None` where it cannot be described."""
    if not schema.describes_video:
        return None
    if schema.given_readers is None:
        return _steps(schema, args)
    readers = schema.given_readers(args)
    if not all(each["outputs"][0] == 0 and 0 not in each["outputs"][1:] for each in readers):
        return None
    first, *others = [steps(find(each["operator"]), each["arguments"]) for each in readers]
    return first if all(each == first for each in others) else None  # one batch, made in one way


def _steps(schema: OpSchema, args: Mapping[str, Any]) -> Steps:
    normalized = bool(args.get("normalized"))
    resizes = "interp_type" in schema.args
    dtype = args.get("dtype")
    frames = {
        "image_type": args.get("image_type", DALIImageType.RGB),
        "color_space": args["color_space"],
        "scale": 1 / 255 if normalized else 1.0,
        "fill_value": args.get("fill_value") or (0,),
    }
    if dtype is not None and (not resizes or normalized):
        frames["dtype"] = dtype
    made: Steps = [("_described_frames", "mixed", frames)]
    if resizes:
        own = {n for n, a in find("resize").args.items() if a.deprecated is None} - {"device"}
        made.append(("resize", "gpu", {n: value for n, value in args.items() if n in own}))
    return made


def decoders(node: OpNode, described: DataNode, sizes: dict[str, DataNode]) -> list[OpNode]:
    """The nodes that make frames of descriptions that `node` makes; the last one's output counts.

    `sizes`: tensor arguments of `node`, on the CPU.
    """
    made: list[OpNode] = []
    for name, device, args in steps(node.schema, node.args) or ():
        tensors = {n: edge for n, edge in sizes.items() if made and n in find(name).args}
        edge = made[-1].outputs[0] if made else described
        made.append(_node(node, name, device, edge, args, tensors))
    return made


def _node(
    reader: OpNode,
    name: str,
    device: str,
    edge: DataNode,
    args: dict[str, object],
    tensors: dict[str, DataNode],
) -> OpNode:
    schema = find(name)
    defaults = {a.name: a.default for a in schema.args.values()}
    node = OpNode(
        schema=schema,
        name=f"{reader.name}.{name.strip('_')}",
        device=device,
        inputs=[edge],
        args={**defaults, **args},
        tensor_args=tensors,
        user_stack=reader.user_stack,
        owner=reader.owner,
        guard=(),
    )
    node.outputs = [DataNode.of(node, 0, 1)]
    return node
