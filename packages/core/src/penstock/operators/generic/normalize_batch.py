"""`normalize` on the GPU: what samples have in common, and the order of the work."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from penstock.kernels.gpu.normalize import Given, mean_type, normalize, uploaded
from penstock.kernels.gpu.normalize_blocks import along
from penstock.kernels.gpu.normalize_moments import estimated, moments
from penstock.tensors.gpu.batch import DeviceBatch

if TYPE_CHECKING:
    from penstock.operators.operator import BatchContext
    from penstock.tensors.gpu.queue import Queue

Axes = tuple[int, ...]
Shape = tuple[int, ...]


class Estimate(NamedTuple):
    """How moments that are not given are estimated."""

    ddof: int
    epsilon: float
    scale: float
    batch: bool


def given_values(c: BatchContext, name: str) -> Given | None:
    """Argument `name` of all samples; `None` if it is not given."""
    constant = getattr(c.args, name)
    if constant is not None:
        return Given(constant.reshape(-1), [constant.shape])
    values = c.values(name)
    if values[0] is None:
        return None
    return Given(
        np.concatenate([value.reshape(-1) for value in values]), [value.shape for value in values]
    )


def samples_by_axes(
    c: BatchContext,
    axes_of: Callable[[Shape, Shape | None, Shape | None], Axes],
    shapes: list[Shape],
    mean: Given | None,
    factor: Given | None,
) -> dict[Axes, list[int] | None]:
    """Samples by the axes along which they have the same parameters; `None` stands for all.

    Parameters
    ----------
    axes_of
        Tells these axes from the shapes of a sample, its mean and its deviation.

    Raises
    ------
    ShapeError
        If shapes do not go together; says in which sample.
    """
    known: dict[tuple[Shape, Shape | None, Shape | None], Axes] = {}
    groups: dict[Axes, list[int] | None] = {}
    keys = zip(shapes, _shapes(mean), _shapes(factor), strict=False)
    for index, key in enumerate(keys):
        axes = known.get(key)
        if axes is None:
            try:
                axes = known[key] = axes_of(*key)
            except ValueError as error:
                raise c.located(error, index) from error
        members = groups.setdefault(axes, [])
        assert members is not None
        members.append(index)
    return groups if len(groups) > 1 else dict.fromkeys(groups)


def _shapes(given: Given | None) -> repeat[Shape | None] | list[Shape]:
    if given is None:
        return repeat(None)
    return given.shapes if len(given.shapes) > 1 else repeat(given.shapes[0])


def normalize_samples(
    queue: Queue,
    data: DeviceBatch,
    out: DeviceBatch,
    axes: Axes,
    members: list[int] | None,
    mean: Given | None,
    factor: Given | None,
    estimate: Estimate,
    shift: float,
) -> None:
    """Normalise the samples `members` by parameters that are the same along `axes`."""
    if members is not None:
        data, out = _chosen(data, members), _chosen(out, members)
        mean, factor = _given_of(mean, members), _given_of(factor, members)
    if not data.sizes().any():
        return
    blocks = along(data.shapes, axes)
    means = factors = None
    if mean is not None:
        means = uploaded(queue, mean, mean_type(data.dtype), data.shapes, blocks)
    if factor is not None:
        factors = uploaded(queue, factor, np.dtype(np.float32), data.shapes, blocks)
    if means is None or factors is None:
        ddof, epsilon, scale, batch = estimate
        parts = moments(queue, data, blocks, batch=batch)
        means, factors = estimated(
            queue,
            data.dtype,
            blocks,
            parts,
            means,
            factors,
            ddof=ddof,
            epsilon=epsilon,
            scale=scale,
        )
    normalize(queue, data, out, blocks, means, factors, shift)


def _chosen(batch: DeviceBatch, members: list[int]) -> DeviceBatch:
    return DeviceBatch(
        batch.runtime, batch.owners, batch.pointers[members], batch.shapes[members], batch.dtype
    )


def _given_of(given: Given | None, members: list[int]) -> Given | None:
    if given is None or len(given.shapes) == 1:
        return given
    ends = np.cumsum([math.prod(shape) for shape in given.shapes])
    parts = np.split(given.values, ends[:-1])
    return Given(np.concatenate([parts[i] for i in members]), [given.shapes[i] for i in members])
