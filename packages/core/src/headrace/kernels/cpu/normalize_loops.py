"""Compiled loops of `normalize`.

All see data as ``(outer, reduced, inner)``, flat: ``outer * inner`` groups of ``reduced`` elements.
Long groups with a short inner axis are handled several elements at a time, so that loops are long
enough for vectors; where even a whole block is short, plain loops are faster.
"""

from __future__ import annotations

import numba
import numpy as np

from headrace.kernels.compilation import njit
from headrace.kernels.cpu.pointers import elements

_VECTOR = 16
_SHORT = 48
_LONG = 2048
"""Neighbours for which more numbers are summed up at a time than a processor has registers for."""
_RUN = 256
"""Elements that make a loop over them worth its while."""


@njit(nogil=True)
def _run_length(reduced: int, inner: int) -> int:
    """Elements handled at a time: a multiple of `inner`."""
    if inner >= _RUN or reduced < 2:
        return inner
    # Whole vectors, if a few more elements make them so.
    times = _VECTOR
    while times > 1 and inner * (times // 2) % _VECTOR == 0:
        times //= 2
    times *= max(1, _RUN // (inner * times))
    return inner * min(times, reduced)


@njit(nogil=True)
def _repeat(values: np.ndarray, out: np.ndarray) -> None:
    for start in range(0, out.size, values.size):
        for i in range(values.size):
            out[start + i] = values[i]


@njit(nogil=True)
def _fold(partial: np.ndarray, out: np.ndarray) -> None:
    out[:] = 0
    for start in range(0, partial.size, out.size):
        for i in range(out.size):
            out[i] += partial[start + i]


@njit(nogil=True, fastmath={"contract"})
def _sums_of_rows(data: np.ndarray, size: int, mean: np.ndarray | None, out: np.ndarray) -> None:
    """Sums of neighbours, `size` at a time: each of a few numbers that are summed up in the end."""
    partial = np.empty(_VECTOR, np.float64)
    for outer in range(out.shape[0]):
        row = data[outer * size : (outer + 1) * size]
        own = 0.0 if mean is None else mean[outer, 0]
        partial[:] = 0
        whole = size - size % _VECTOR
        for start in range(0, whole, _VECTOR):
            for i in range(_VECTOR):
                value = np.float64(row[np.uintp(start + i)])
                if mean is None:
                    partial[i] += value
                else:
                    partial[i] += (value - own) * (value - own)
        for i in range(size - whole):
            value = np.float64(row[np.uintp(whole + i)])
            if mean is None:
                partial[i] += value
            else:
                partial[i] += (value - own) * (value - own)
        total = 0.0
        for i in range(_VECTOR):
            total += partial[i]
        out[outer, 0] = total


@njit(nogil=True, fastmath={"contract"})
def sums(
    data: np.ndarray, reduced: int, inner: int, mean: np.ndarray | None, out: np.ndarray
) -> None:
    """Sum of each group, or of its squared distances to its mean.

    `mean`: float64 ``(outer, inner)``; `None` for sums. `out`: float64 ``(outer, inner)``.
    """
    size = reduced * inner
    if size <= _SHORT:
        for outer in range(out.shape[0]):
            for i in range(inner):
                total, own = 0.0, 0.0 if mean is None else mean[outer, i]
                for r in range(reduced):
                    value = np.float64(data[np.uintp(outer * size + r * inner + i)])
                    if mean is None:
                        total += value
                    else:
                        total += (value - own) * (value - own)
                out[outer, i] = total
        return
    if inner == 1 and reduced < _LONG:
        _sums_of_rows(data, size, mean, out)
        return
    run = _run_length(reduced, inner)
    partial, center = np.empty(run, np.float64), np.empty(run, np.float64)
    for outer in range(out.shape[0]):
        block = data[outer * size : (outer + 1) * size]
        partial[:] = 0
        if mean is not None:
            _repeat(mean[outer], center)
        for start in range(0, size, run):
            taken = block[start : start + run]
            for i in range(taken.size):
                value = np.float64(taken[i])
                if mean is None:
                    partial[i] += value
                else:
                    partial[i] += (value - center[i]) * (value - center[i])
        _fold(partial, out[outer])


@njit(nogil=True, fastmath={"contract"})
def scale_deviations(
    data: np.ndarray,
    reduced: int,
    inner: int,
    mean: np.ndarray,
    scale: np.ndarray,
    shift: np.float32,
    out: np.ndarray,
) -> None:
    """Fill `out` with ``(data - mean) * scale + shift``.

    `mean`: float32 or float64 ``(outer, inner)``; differences are of its type. `scale`: float32
    ``(outer, inner)``.
    """
    size = reduced * inner
    if inner == 1:
        for outer in range(mean.shape[0]):
            begin = outer * size
            row, given = data[begin : begin + size], out[begin : begin + size]
            own, times = mean[outer, 0], scale[outer, 0]
            for i in range(size):
                given[i] = np.float32(mean.dtype.type(row[i]) - own) * times + shift
        return
    if size <= _SHORT:
        at = np.uintp(0)
        for outer in range(mean.shape[0]):
            for _ in range(reduced):
                for i in range(inner):
                    distance = mean.dtype.type(data[at]) - mean[outer, i]
                    out[at] = np.float32(distance) * scale[outer, i] + shift
                    at += np.uintp(1)
        return
    run = _run_length(reduced, inner)
    center, factor = np.empty(run, mean.dtype), np.empty(run, np.float32)
    for outer in range(mean.shape[0]):
        block = data[outer * size : (outer + 1) * size]
        given = out[outer * size : (outer + 1) * size]
        _repeat(mean[outer], center)
        _repeat(scale[outer], factor)
        for start in range(0, size, run):
            taken, to = block[start : start + run], given[start : start + run]
            for i in range(taken.size):
                distance = mean.dtype.type(taken[i]) - center[i]
                to[i] = np.float32(distance) * factor[i] + shift


@njit(nogil=True, error_model="numpy")
def normalize_by_own_moments(
    addresses: np.ndarray,
    like: np.ndarray,
    blocks: np.ndarray,
    ddof: int,
    epsilon: float,
    scale: float,
    shift: np.float32,
    out: np.ndarray,
    begins: np.ndarray,
    moments: np.ndarray,
    parameters: np.ndarray,
) -> None:
    """All of it for samples whose groups fill whole blocks, with moments of their own.

    `addresses`, `like`: uint64 ``(samples,)``: where each is in memory, and an array of its type.
    `blocks`: int64 ``(samples, 3)``: outer, reduced and inner extent; 0 for samples to leave out.
    `out`, `begins`: float32, flat, and the element of it with which each sample begins. `moments`,
    `parameters`: scratch memory: float64 ``(groups,)`` and float32 ``(2, groups)`` of the largest
    sample.
    """
    for k in range(len(addresses)):
        count, reduced, inner = blocks[k]
        size = count * reduced * inner
        if size == 0:
            continue
        data = numba.carray(elements(addresses[k], like), size)
        target = out[begins[k] : begins[k] + size]
        normalize_sample(
            data, count, reduced, inner, ddof, epsilon, scale, shift, target, moments, parameters
        )


@njit(nogil=True, error_model="numpy")
def normalize_sample(
    data: np.ndarray,
    count: int,
    reduced: int,
    inner: int,
    ddof: int,
    epsilon: float,
    scale: float,
    shift: np.float32,
    out: np.ndarray,
    moments: np.ndarray,
    parameters: np.ndarray,
) -> None:
    """The same for one sample, which is not empty."""
    found = moments[: count * inner].reshape(count, inner)
    mean = parameters[0, : count * inner].reshape(count, inner)
    factor = parameters[1, : count * inner].reshape(count, inner)
    sums(data, reduced, inner, None, found)
    for outer in range(count):
        for i in range(inner):
            mean[outer, i] = np.float32(found[outer, i] / max(reduced, 1))
    centers = mean.astype(np.float64)
    sums(data, reduced, inner, centers, found)
    for outer in range(count):
        for i in range(inner):
            square = found[outer, i] / (reduced - ddof) if reduced > ddof else 0.0
            deviation = np.sqrt(square + epsilon)
            factor[outer, i] = np.float32(scale / deviation) if deviation != 0 else np.float32(0)
    scale_deviations(data, reduced, inner, mean, factor, shift, out)
