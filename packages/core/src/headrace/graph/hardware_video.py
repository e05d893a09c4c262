"""Readers of videos for a GPU that has decoders: they describe frames, and the GPU decodes them."""

from __future__ import annotations

from dataclasses import replace

from headrace.graph.data_node import DataNode
from headrace.graph.nodes import OpNode
from headrace.operators.readers.video_description import DESCRIBES
from headrace.operators.support.registry import find


def decodes(node: OpNode, wanted: set[str]) -> bool:
    """Return True if a GPU's decoders make the first output of a reader, which is wanted there.

    `wanted` are the devices that read the output.
    """
    if not (node.schema.decodes_video and node.schema.reader) or wanted != {"gpu"}:
        return False
    from headrace.kernels.gpu.nvdec.session import is_wanted  # which needs Numba

    return is_wanted()


def describing(node: OpNode) -> OpNode:
    """The same reader, which describes frames."""
    return replace(node, args={**node.args, DESCRIBES: True})


def decoders(node: OpNode, described: DataNode, sizes: dict[str, DataNode]) -> list[OpNode]:
    """The nodes that make frames of descriptions, for a reader; the last one's output counts.

    `sizes`: tensor arguments of the reader, on the CPU.
    """
    args = node.args
    normalized = bool(args.get("normalized"))
    resizes = "interp_type" in node.schema.args
    dtype = args.get("dtype")
    frames = {
        "image_type": args["image_type"],
        "color_space": args["color_space"],
        "scale": 1 / 255 if normalized else 1.0,
        "fill_value": args.get("fill_value") or (0,),
    }
    if dtype is not None and (not resizes or normalized):
        frames["dtype"] = dtype
    made = [_node(node, "_described_frames", "mixed", described, frames, {})]
    if resizes:
        own = find("resize").args.keys() - {"device"}
        given = {name: value for name, value in args.items() if name in own}
        tensors = {name: edge for name, edge in sizes.items() if name in own}
        made.append(_node(node, "resize", "gpu", made[0].outputs[0], given, tensors))
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
