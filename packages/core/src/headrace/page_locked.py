"""Page-locked host memory for programs that feed a GPU."""

from __future__ import annotations

import numbers
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.executor.fallback import absence, tell
from headrace.tensors.gpu.device import get_device
from headrace.tensors.gpu.runtime import current_device
from headrace.tensors.pool import HOST_POOL
from headrace.tracebacks import public

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

__all__ = ["empty_pinned"]


def __dir__() -> list[str]:
    return [*__all__]


@public
def empty_pinned(shape: int | Sequence[int], dtype: DTypeLike) -> np.ndarray:
    """Return an array in page-locked memory, from which a GPU copies at full speed.

    For sources that write batches there and hand them over with ``no_copy=True``: the pipeline
    then uploads them from where they are. Take a new array for each batch, and never write to one
    that was handed over: the pipeline holds it until the upload has read it. The memory serves the
    next call once no array, view or tensor refers to it any more, so that it is locked only once.

    Parameters
    ----------
    shape
        Length of each axis.
    dtype
        Element type, as `numpy.empty` takes it: numbers or truth values.

    Returns
    -------
    numpy.ndarray
        C-contiguous and uninitialised, aligned to 64 bytes. With ``HEADRACE_GPU=never`` it is in
        ordinary memory.

    Raises
    ------
    ArgumentTypeError
        If `shape` has anything but integers, or `dtype` is no type of numbers.
    ArgumentValueError
        If a length is negative.
    GpuNotAvailableError
        If there is no GPU that can be used, or the process is a fork of one that uses it.
    MemoryError
        If there is not so much memory.

    Notes
    -----
    The library knows of its own copies only. Before the last reference to an array goes, wait for
    copies that another library makes of it without waiting, such as
    ``torch.from_numpy(array).to(device, non_blocking=True)``: otherwise they read what comes after
    it. `torch.empty` with ``pin_memory=True`` gives memory that PyTorch keeps until then, and that
    sources may write to just as well.

    Examples
    --------
    >>> def source():
    ...     batch = headrace.empty_pinned((256, 3, 224, 224), "float32")
    ...     simulate(out=batch)
    ...     return batch
    >>> images = fn.external_source(source, no_copy=True, device="gpu")
    """
    lengths = [shape] if isinstance(shape, numbers.Integral) else shape
    if not isinstance(lengths, Sequence) or not all(
        isinstance(length, numbers.Integral) for length in lengths
    ):
        raise ArgumentTypeError(
            f"`shape` is {shape!r}; expected an integer or a tuple of integers."
        )
    extents = tuple([int(length) for length in lengths])
    if min(extents, default=0) < 0:
        raise ArgumentValueError(f"`shape` is {shape!r}; lengths of axes cannot be negative.")
    try:
        found = np.dtype(dtype)
    except TypeError as error:
        raise ArgumentTypeError(f"`dtype` is {dtype!r}; expected an element type.") from error
    if found.kind not in "biuf":
        raise ArgumentTypeError(
            f"`dtype` is {dtype!r}; expected integers, floats or truth values, which batches have."
        )
    if absence():
        tell("`empty_pinned`", absence())
        return HOST_POOL.empty(extents, found)
    device = get_device(current_device())
    with device.runtime.active():
        return device.pinned.empty(extents, found)
