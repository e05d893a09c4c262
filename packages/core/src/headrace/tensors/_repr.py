"""Printed form of tensors and batches: metadata first, values last and summarised."""

from __future__ import annotations

import math
import textwrap
from collections.abc import Callable, Iterator, Sequence

import numpy as np

from headrace.types.dtypes import SIDE_TYPES
from headrace.types.enums import DALIDataType, DALIEnum, DALIImageType, DALIInterpType
from headrace.types.side_data import decoded

_MEMBERS: dict[DALIDataType, type[DALIEnum]] = {
    DALIDataType.DATA_TYPE: DALIDataType,
    DALIDataType.IMAGE_TYPE: DALIImageType,
    DALIDataType.INTERP_TYPE: DALIInterpType,
}
_EDGE_ITEMS = 2
# Values printed in full; beyond, only the edges of an axis are shown.
_THRESHOLD = 50
# Lines for the values of one sample; those of more are summarised in one line.
_LINES = 4
_SHAPES_SHOWN = 8
_SAMPLES_SHOWN = 6
_SCALARS = textwrap.TextWrapper(75, initial_indent="  ", subsequent_indent="   ")


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


def shape_range(shapes: list[tuple[int, ...]]) -> str:
    """The shapes of the samples of a batch, as ``(4, 427..640, 3)``: extents that differ as ranges.

    Samples of a batch have the same number of axes.
    """
    if not shapes:
        return ""
    spans = [(min(extents), max(extents)) for extents in zip(*shapes, strict=True)]
    inner = ", ".join(str(low) if low == high else f"{low}..{high}" for low, high in spans)
    return f"({inner},)" if len(spans) == 1 else f"({inner})"


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


def values(array: np.ndarray, dtype: DALIDataType, separator: str = ", ") -> str:
    """The elements of `array`; of an array with many rows, how they are distributed."""
    if dtype in SIDE_TYPES:
        return repr(decoded(array, dtype))
    members = _MEMBERS.get(dtype)
    formatter = {"int": lambda value: _member_name(members, int(value))} if members else None
    if array.ndim <= 1 or array.size <= _THRESHOLD:
        text = np.array2string(
            array,
            threshold=_THRESHOLD,
            edgeitems=_EDGE_ITEMS,
            separator=separator,
            formatter=formatter,  # type: ignore[arg-type]
        )
        if text.count("\n") < _LINES:
            return text
    return f"<{summary(array)}>"


def summary(array: np.ndarray) -> str:
    """The smallest and the largest element and the mean, such as ``0 .. 255, mean 127.5``."""
    if not array.size:
        return "no elements"
    if array.dtype == np.bool_:
        return f"True: {np.count_nonzero(array)} of {array.size}"
    known = array
    missing = 0
    if array.dtype.kind == "f":
        known = array[~np.isnan(array)]
        missing = array.size - known.size
        if not known.size:
            return "all NaN"
    with np.errstate(all="ignore"):  # infinities have no mean
        mean = float(known.mean(dtype=np.float64))
    text = f"{_number(known.min())} .. {_number(known.max())}, mean {mean:.4g}"
    return f"{text}, {missing} NaN" if missing else text


def shown(shapes: Sequence[tuple[int, ...]]) -> Iterator[int | None]:
    """Numbers of the samples to show out of those of `shapes`, with `None` where some are left out.

    A batch of few values, such as labels, is shown in full.
    """
    count = len(shapes)
    if count <= _SAMPLES_SHOWN or sum(max(math.prod(shape), 1) for shape in shapes) <= _THRESHOLD:
        yield from range(count)
        return
    edge = _SAMPLES_SHOWN // 2
    yield from range(edge)
    yield None
    yield from range(count - edge, count)


def with_values(
    description: str,
    shapes: Sequence[tuple[int, ...]],
    sample: Callable[[int], np.ndarray],
    dtype: DALIDataType,
) -> str:
    """`description` followed by the elements of samples, which have `shapes`."""
    lines = [description]
    count = len(shapes)
    if count > 1 and dtype not in SIDE_TYPES and all(shape == () for shape in shapes):
        texts = ("..." if n is None else values(sample(n), dtype) for n in shown(shapes))
        return "\n".join([description, *_SCALARS.wrap(f"[{', '.join(texts)}]")])
    for number in shown(shapes):
        if number is None:
            lines.append("  ...")
            continue
        prefix = f"  [{number}] " if count > 1 else "  "
        body = textwrap.indent(values(sample(number), dtype), " " * len(prefix))
        lines.append(prefix + body[len(prefix) :])
    return "\n".join(lines)


def _number(value: np.generic) -> str:
    return f"{float(value):.4g}" if value.dtype.kind == "f" else str(value)


def _member_name(members: type[DALIEnum], value: int) -> str:
    try:
        return members(value).name
    except ValueError:
        return str(value)
