"""How tensors and batches print: what they are first, their values last and summarised."""

from __future__ import annotations

import textwrap

import numpy as np

from penstock.types.enums import DALIDataType, DALIEnum, DALIImageType, DALIInterpType

_MEMBERS: dict[DALIDataType, type[DALIEnum]] = {
    DALIDataType.DATA_TYPE: DALIDataType,
    DALIDataType.IMAGE_TYPE: DALIImageType,
    DALIDataType.INTERP_TYPE: DALIInterpType,
}
_EDGE_ITEMS = 2
# Values printed in full; beyond, only the edges of each axis are shown.
_THRESHOLD = 50
_SHAPES_SHOWN = 8
_SAMPLES_SHOWN = 6


def describe_tensor(
    name: str,
    shape: tuple[int, ...],
    dtype: DALIDataType,
    layout: str,
    source: str,
    device: str = "cpu",
) -> str:
    """One line about a tensor."""
    parts = [f"shape={shape}", f"dtype={dtype}"]
    if layout:
        parts.append(f'layout="{layout}"')
    parts.append(f'device="{device}"')
    if source:
        parts.append(f"source={source!r}")
    return f"{name}({', '.join(parts)})"


def shapes_text(shapes: list[tuple[int, ...]]) -> str:
    """Shapes of the samples of a batch; once if all are equal, the first and last of many."""
    if len(shapes) > 1 and all(shape == shapes[0] for shape in shapes):
        return f"[{shapes[0]}] * {len(shapes)}"
    if len(shapes) <= _SHAPES_SHOWN:
        return str(shapes)
    edge = _SHAPES_SHOWN // 2
    first = ", ".join(map(str, shapes[:edge]))
    last = ", ".join(map(str, shapes[-edge:]))
    return f"[{first}, ..., {last}]"


def describe_list(
    name: str,
    shapes: list[tuple[int, ...]],
    dtype: DALIDataType,
    layout: str,
    device: str = "cpu",
) -> str:
    """One line about a batch."""
    parts = [f"num_samples={len(shapes)}", f"shape={shapes_text(shapes)}", f"dtype={dtype}"]
    if layout:
        parts.append(f'layout="{layout}"')
    parts.append(f'device="{device}"')
    return f"{name}({', '.join(parts)})"


def values(array: np.ndarray, dtype: DALIDataType) -> str:
    """The elements of `array`, large ones summarised."""
    members = _MEMBERS.get(dtype)
    if members is not None:
        return np.array2string(
            array,
            threshold=_THRESHOLD,
            edgeitems=_EDGE_ITEMS,
            separator=", ",
            formatter={"int": lambda value: _member_name(members, int(value))},
        )
    return np.array2string(array, threshold=_THRESHOLD, edgeitems=_EDGE_ITEMS, separator=", ")


def with_values(description: str, arrays: list[np.ndarray], dtype: DALIDataType) -> str:
    """`description` followed by the elements, sample by sample."""
    edge = _SAMPLES_SHOWN // 2
    numbers = list(range(len(arrays)))
    if len(numbers) > _SAMPLES_SHOWN:
        shown = [*numbers[:edge], None, *numbers[-edge:]]
    else:
        shown = [*numbers]
    lines = [description]
    for number in shown:
        if number is None:
            lines.append("  ...")
            continue
        prefix = f"  [{number}] " if len(arrays) > 1 else "  "
        body = textwrap.indent(values(arrays[number], dtype), " " * len(prefix))
        lines.append(prefix + body[len(prefix) :])
    return "\n".join(lines)


def _member_name(members: type[DALIEnum], value: int) -> str:
    try:
        return members(value).name
    except ValueError:
        return str(value)
