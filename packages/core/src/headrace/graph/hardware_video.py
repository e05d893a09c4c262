"""Videos that are read or fed for a GPU that has decoders: the CPU describes frames, which the GPU
decodes.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.graph.data_node import DataNode
from headrace.graph.nodes import OpNode
from headrace.operators.readers.video_description import DESCRIBES
from headrace.operators.support.registry import find
from headrace.types import DALIImageType

if TYPE_CHECKING:
    from headrace.operators.support.schema import OpSchema


def decodes(node: OpNode, wanted: set[str]) -> bool:
    """Return True if a GPU's decoders make the first output of a reader, which is wanted there.

    `wanted` are the devices that read the output.
    """
    return wanted == {"gpu"} and can_decode(node.schema)


def decodes_fed(node: OpNode) -> bool:
    """Return True if a GPU's decoders make frames of videos that are fed to `node`."""
    schema = node.schema
    return schema.fed and schema.decodes_video and node.device == "mixed" and _has_decoders()


def can_decode(schema: OpSchema) -> bool:
    """Return True if there are decoders that make the first output of readers of this kind."""
    return schema.decodes_video and schema.reader and _has_decoders()


def _has_decoders() -> bool:
    from headrace.kernels.gpu.nvdec.session import is_wanted  # which needs Numba

    return is_wanted()


def describing(args: dict[str, Any]) -> dict[str, Any]:
    """Arguments of the same operator, which describes frames."""
    return {**args, DESCRIBES: True}


def steps(schema: OpSchema, args: dict[str, Any]) -> list[tuple[str, str, dict[str, Any]]]:
    """The operators that make frames of what is described: name, device and arguments."""
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
    made: list[tuple[str, str, dict[str, Any]]] = [("_described_frames", "mixed", frames)]
    if resizes:
        own = {n for n, a in find("resize").args.items() if a.deprecated is None} - {"device"}
        made.append(("resize", "gpu", {n: value for n, value in args.items() if n in own}))
    return made


def decoders(node: OpNode, described: DataNode, sizes: dict[str, DataNode]) -> list[OpNode]:
    """The nodes that make frames of descriptions that `node` makes; the last one's output counts.

    `sizes`: tensor arguments of `node`, on the CPU.
    """
    made: list[OpNode] = []
    for name, device, args in steps(node.schema, node.args):
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
