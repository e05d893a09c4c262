"""Serialised results of a worker: the samples of a batch, or of a part of it, for each output."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from headrace.errors import DataTypeError
from headrace.operators.support.external.data import check_uniform, own_copies, samples_of
from headrace.operators.support.external.device_data import is_on_gpu
from headrace.tensors.pool import HostPool
from headrace.types import DALIDataType

_ALIGNMENT_BYTES = 64


@dataclass(slots=True)
class OutputSamples:
    """Samples of one output."""

    samples: list[np.ndarray]
    dense: np.ndarray | None
    """The array that `samples` are the rows of, if they are."""
    layout: str
    on_gpu: Any = None
    """Data that the source returned, where that is on a GPU; there are no `samples` then."""


def unpack(data: Any, dtype: DALIDataType | None = None) -> OutputSamples:
    """The samples in what a source returned for one output; `dtype` is what numbers become."""
    if is_on_gpu(data):
        return OutputSamples([], None, "", data)
    samples, layout = samples_of(data, dtype)
    if isinstance(samples, np.ndarray):
        return OutputSamples([samples[i, ...] for i in range(len(samples))], samples, layout)
    if samples:
        check_uniform(samples)
    return OutputSamples(samples, None, layout)


def copied(part: OutputSamples, pool: HostPool) -> OutputSamples:
    """A copy of `part` in memory of `pool`; what is on a GPU is left there."""
    if part.dense is not None:
        dense = pool.copy_of(part.dense)
        return OutputSamples([dense[i, ...] for i in range(len(dense))], dense, part.layout)
    if not part.samples:
        return part
    return OutputSamples(*own_copies(part.samples, pool), part.layout)


@dataclass(frozen=True, slots=True)
class OutputLayout:
    """Layout of the samples of one output in a segment."""

    dtype: str
    count: int
    shapes: tuple[int, ...] | list[tuple[int, ...]]
    """One shape for all samples, which then lie side by side, or one for each."""
    offsets: int | list[int]
    layout: str


def write(parts: Sequence[OutputSamples], take: Callable[[int], np.ndarray]) -> list[OutputLayout]:
    """Copy `parts` into the memory that ``take(size)`` gives, and say where they are."""
    if any(part.on_gpu is not None for part in parts):
        raise DataTypeError(
            "A source in a worker process returned data on a GPU, which only data of the host can "
            'be handed over from: return it as NumPy arrays, or use parallel="threads".'
        )
    described, size = [], 0
    for part in parts:
        one, size = _describe(part, size)
        described.append(one)
    memory = take(size)
    for part, where in zip(parts, described, strict=True):
        if isinstance(where.offsets, int):
            target = _dense(memory, where)
            if part.dense is not None:
                np.copyto(target, part.dense)
            else:
                for i, sample in enumerate(part.samples):
                    np.copyto(target[i, ...], sample)
        else:
            for row, sample in zip(_ragged(memory, where), part.samples, strict=True):
                np.copyto(row, sample)
    return described


def _describe(part: OutputSamples, start: int) -> tuple[OutputLayout, int]:
    """Lay out `part` in memory from offset `start` on; returns the layout and its end."""
    samples, count = part.samples, len(part.samples)
    if not samples:
        return OutputLayout("u1", 0, [], [], part.layout), start
    dtype = samples[0].dtype
    shape = samples[0].shape
    if part.dense is not None or all(s.shape == shape for s in samples):
        end = start + count * math.prod(shape) * dtype.itemsize
        return OutputLayout(dtype.str, count, shape, start, part.layout), _aligned(end)
    offsets, shapes = [], []
    for sample in samples:
        offsets.append(start)
        shapes.append(sample.shape)
        start = _aligned(start + sample.nbytes)
    return OutputLayout(dtype.str, count, shapes, offsets, part.layout), start


def _aligned(offset: int) -> int:
    return -(-offset // _ALIGNMENT_BYTES) * _ALIGNMENT_BYTES


def _dense(memory: np.ndarray, where: OutputLayout) -> np.ndarray:
    shapes: Any = where.shapes
    offset: Any = where.offsets
    return np.ndarray((where.count, *shapes), where.dtype, memory, offset)


def _ragged(memory: np.ndarray, where: OutputLayout) -> list[np.ndarray]:
    shapes: Any = where.shapes
    offsets: Any = where.offsets
    pairs = zip(shapes, offsets, strict=True)
    return [np.ndarray(shape, where.dtype, memory, offset) for shape, offset in pairs]


def read(memory: np.ndarray, described: Sequence[OutputLayout]) -> list[OutputSamples]:
    """The parts that `write` has described, as views of `memory`."""
    parts = []
    for where in described:
        if isinstance(where.offsets, int):
            dense = _dense(memory, where)
            parts.append(
                OutputSamples([dense[i, ...] for i in range(where.count)], dense, where.layout)
            )
        else:
            parts.append(OutputSamples(_ragged(memory, where), None, where.layout))
    return parts
