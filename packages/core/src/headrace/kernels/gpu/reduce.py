"""Sums, moments and extremes along any axes."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from headrace.errors import ShapeError
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import constant, numbered, record
from headrace.tensors.gpu.batch import DeviceBatch, volumes
from headrace.tensors.gpu.queue import Queue

_STEPS = ("SUM", "SQUARE", "MAX", "MIN")
_STEP = numbered(__name__, "Step", _STEPS)
_AXES = constant(__name__, "AXES", 4, "uint32")
_EACH = constant(__name__, "EACH", 64, "uint32")
"""Elements that a thread reduces."""
_WARP, _FEW = 32, 4
_GROUPS = record(f"""reduce:Groups {{
    uint32 first_block;
    uint32 parts;  // that a group is reduced in
    uint64 source;
    uint64 centre;  // address of what is subtracted; 0 if nothing is
    uint64 partial;  // (groups, parts)
    uint64 out;
    int64 groups;
    int64 reduced;  // elements of a group
    int64 centres;  // 1, or as many as groups
    double divisor;
    int64 kept_extents[{_AXES}], kept_strides[{_AXES}], reduced_extents[{_AXES}];
    int64 reduced_strides[{_AXES}];
}}""")


class Formula(NamedTuple):
    """Steps that reduce elements to a result."""

    step: str
    """Step for each element: one of `_STEPS`; ``"SQUARE"`` sums up squared distances."""
    type: np.dtype
    """Element type of the accumulator."""
    divides: bool = False
    """True if the sum is divided by the number of elements."""
    root: bool = False
    """True if the root is taken in the end."""
    ddof: int = 0
    """Number subtracted from the number of elements."""


def reduce(
    queue: Queue,
    source: DeviceBatch,
    out: DeviceBatch,
    axes: tuple[int, ...],
    formula: Formula,
    centre: DeviceBatch | None = None,
) -> None:
    """Fill `out` with `source` reduced along `axes`.

    `centre`: float32: what distances are taken to, one number for each result or one for a sample.
    """
    records = np.empty(len(out), _GROUPS)
    records["source"], records["out"] = source.pointers, out.pointers
    records["groups"] = groups = out.sizes()
    reduced = volumes(source.shapes[:, list(axes)])
    records["reduced"] = reduced
    records["centre"], records["centres"] = 0, 1
    if centre is not None:
        records["centre"], records["centres"] = centre.pointers, centre.sizes()
    records["divisor"] = reduced - formula.ddof if formula.divides else 1
    inner = _fill_axes(records, source.shapes, axes)
    lanes = _lanes(int(reduced.max(initial=0)), inner)
    parts = np.maximum(quotient_up(reduced, lanes * _EACH), 1)
    whole = int(parts.max(initial=1)) == 1
    records["parts"], records["partial"] = parts, 0
    if not whole:
        partial = queue.empty(np.stack([groups, parts], axis=1), formula.type, len(out))
        records["partial"] = partial.pointers
    finish = np.int32(formula.divides), np.int32(formula.root)
    launch_records(
        queue,
        kernel("reduce.cu", "reduce_parts", source.dtype, formula.type, out.dtype),
        records,
        quotient_up(groups, THREADS // lanes) * parts,
        np.int32(_STEP[formula.step]),
        np.uint32(lanes),
        np.int32(whole),
        *finish,
        shared_bytes=THREADS * formula.type.itemsize,
    )
    if not whole:
        launch_records(
            queue,
            kernel("reduce.cu", "reduce_finish", formula.type, out.dtype),
            records,
            quotient_up(groups, THREADS),
            np.int32(_STEP[formula.step]),
            *finish,
        )


def _lanes(reduced: int, inner: int) -> int:
    """Threads that reduce a group: neighbouring ones are to read neighbouring elements, those of a
    group, or of many groups, and each a few at least.
    """
    if inner >= _WARP:
        return 1
    lanes = 1
    while lanes < _WARP and lanes * _FEW < reduced:
        lanes *= 2
    return lanes if reduced <= _WARP * _EACH else THREADS


def _fill_axes(records: np.ndarray, shapes: np.ndarray, axes: tuple[int, ...]) -> int:
    """Fill in where elements are; the groups that lie side by side in the largest sample."""
    for name in ("kept", "reduced"):
        records[f"{name}_extents"], records[f"{name}_strides"] = 1, 0
    stride = np.ones(len(shapes), np.int64)
    places = {"kept": _AXES, "reduced": _AXES}
    last = ""
    inner = 1
    for axis in range(shapes.shape[1] - 1, -1, -1):
        name = "reduced" if axis in axes else "kept"
        if name == last:  # neighbours are one axis
            records[f"{name}_extents"][:, places[name]] *= shapes[:, axis]
        else:
            places[name] -= 1
            if places[name] < 0:
                raise ShapeError(f"The axes {axes} are in more than {_AXES} places.")
            records[f"{name}_extents"][:, places[name]] = shapes[:, axis]
            records[f"{name}_strides"][:, places[name]] = stride
            last = name
        stride = stride * shapes[:, axis]
        if places["reduced"] == _AXES:
            inner = int(stride.max(initial=0))
    return inner
