"""`normalize` on the GPU: what samples have in common, and the order of the work."""

from __future__ import annotations

import math
from collections.abc import Callable
from itertools import repeat
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from headrace.kernels.gpu.normalize import HostParameter, mean_type, normalization, uploaded
from headrace.kernels.gpu.normalize_blocks import Blocks
from headrace.kernels.gpu.normalize_estimate import estimate_rows, suits
from headrace.kernels.gpu.normalize_moments import estimated, moments
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from headrace.operators.support.operator import BatchContext

Axes = tuple[int, ...]
Shape = tuple[int, ...]


class Estimate(NamedTuple):
    """Estimation of moments that are not given."""

    ddof: int
    epsilon: float
    scale: float
    batch: bool


def given_values(c: BatchContext, name: str) -> HostParameter | None:
    """Argument `name` of all samples; `None` if it is not given."""
    constant = getattr(c.args, name)
    if constant is not None:
        return HostParameter(constant.reshape(-1), [constant.shape])
    values = c.values(name)
    if values[0] is None:
        return None
    return HostParameter(
        np.concatenate([value.reshape(-1) for value in values]), [value.shape for value in values]
    )


def samples_by_axes(
    c: BatchContext,
    axes_of: Callable[[Shape, Shape | None, Shape | None], Axes],
    reduced: Axes | None,
    shapes: np.ndarray,
    mean: HostParameter | None,
    factor: HostParameter | None,
) -> dict[Axes, np.ndarray | None]:
    """Samples by the axes along which they have the same parameters; `None` stands for all."""
    found: dict[Axes, list[np.ndarray]] = {}
    for (own_mean, own_factor), members in _by_parameters(len(shapes), mean, factor).items():
        own = shapes[members]
        wrong = _misfits(own, own_mean, reduced) | _misfits(own, own_factor, reduced)
        first = int(members[wrong.argmax()])  # that is wrong, if any is
        try:
            axes = axes_of(tuple(shapes[first].tolist()), own_mean, own_factor)
        except ValueError as error:
            raise c.located(error, first) from error
        found.setdefault(axes, []).append(members)
    if len(found) == 1:
        return dict.fromkeys(found)
    return {axes: np.sort(np.concatenate(members)) for axes, members in found.items()}


def _by_parameters(
    count: int, mean: HostParameter | None, factor: HostParameter | None
) -> dict[tuple[Shape | None, Shape | None], np.ndarray]:
    """Samples by the shapes of their mean and deviation."""
    given = [_shapes(mean), _shapes(factor)]
    if all(isinstance(shapes, repeat) for shapes in given):
        return {(next(iter(given[0])), next(iter(given[1]))): np.arange(count)}
    found: dict[tuple[Shape | None, Shape | None], list[int]] = {}
    for index, key in zip(range(count), zip(*given, strict=False), strict=False):
        found.setdefault(key, []).append(index)
    return {key: np.array(members) for key, members in found.items()}


def _shapes(given: HostParameter | None) -> repeat[Shape | None] | list[Shape]:
    if given is None:
        return repeat(None)
    return given.shapes if len(given.shapes) > 1 else repeat(given.shapes[0])


def _misfits(shapes: np.ndarray, parameter: Shape | None, reduced: Axes | None) -> np.ndarray:
    """Samples whose shape does not fit a mean or deviation of shape `parameter`."""
    if parameter is None or math.prod(parameter) == 1:
        return np.zeros(len(shapes), np.bool_)
    if len(parameter) != shapes.shape[1]:
        return np.ones(len(shapes), np.bool_)
    extents = np.array(parameter, np.int64)
    fits: np.ndarray = shapes == extents
    if reduced is None:
        fits |= extents == 1
    else:
        fits[:, list(reduced)] = extents[list(reduced)] == 1
    return np.logical_not(fits.all(axis=1))


def normalize_samples(
    queue: Queue,
    data: DeviceBatch,
    out: DeviceBatch,
    blocks: Blocks,
    members: np.ndarray | None,
    mean: HostParameter | None,
    factor: HostParameter | None,
    estimate: Estimate,
    shift: float,
) -> None:
    """Normalise the samples `members` by parameters that are the same in groups of `blocks`."""
    if members is not None:
        data, out = data.taken(members), out.taken(members)
        mean, factor = _given_of(mean, members), _given_of(factor, members)
    if not data.sizes().any():
        return
    means = factors = None
    launches = []
    if mean is not None:
        means = uploaded(queue, mean, mean_type(data.dtype), data.shapes, blocks)
    if factor is not None:
        factors = uploaded(queue, factor, np.dtype(np.float32), data.shapes, blocks)
    if means is None or factors is None:
        settings = estimate._asdict()
        batch = settings.pop("batch")
        if not batch and suits(blocks):
            launch, means, factors = estimate_rows(queue, data, blocks, means, factors, **settings)
            launches.append(launch)
        else:
            parts = moments(queue, data, blocks, batch=batch)
            means, factors = estimated(queue, data.dtype, blocks, parts, means, factors, **settings)
    launches.append(normalization(queue, data, out, blocks, means, factors, shift))
    for launch in launches:
        queue.launch(*launch)


def _given_of(given: HostParameter | None, members: np.ndarray) -> HostParameter | None:
    if given is None or len(given.shapes) == 1:
        return given
    ends = np.cumsum([math.prod(shape) for shape in given.shapes])
    parts = np.split(given.values, ends[:-1])
    return HostParameter(
        np.concatenate([parts[i] for i in members]), [given.shapes[i] for i in members]
    )
