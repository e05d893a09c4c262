"""From batches to JAX's arrays, without a copy wherever the memory allows it."""

from __future__ import annotations

import functools
from collections.abc import Callable
from typing import TYPE_CHECKING, Any

import jax
import numpy as np
from jax.sharding import Sharding, SingleDeviceSharding

from headrace.errors import ShapeError
from headrace.tensors import TensorListCPU, TensorListGPU
from headrace.types.dtypes import SIDE_TYPES

if TYPE_CHECKING:
    Batch = TensorListCPU | TensorListGPU

_LISTED = 3
"""So many of the shapes of a ragged batch are told in an error."""


def to_rows(batch: Batch, kept: int | list[int], output: str) -> Any:
    """The kept samples of `batch`, outermost axis samples, where they are; a list of side data."""
    if not isinstance(kept, int):
        batch = batch[:0] if not kept else type(batch)([batch[i] for i in kept], contiguous=False)
    elif kept < len(batch):
        batch = batch[:kept]
    try:
        if isinstance(batch, TensorListCPU):
            return batch.tolist() if batch.dtype in SIDE_TYPES else batch.as_array()
        return from_gpu(batch)
    except ShapeError as error:
        shapes = list(dict.fromkeys(batch.shape()))
        listed = ", ".join(map(str, shapes[:_LISTED])) + (", ..." if shapes[_LISTED:] else "")
        raise ShapeError(
            f'The samples of output "{output}" do not all have the same shape ({listed}), so they '
            "cannot be one array. Pad or resize them in the pipeline (`fn.pad`, `fn.resize`, "
            "`fn.crop`)."
        ) from error


def from_gpu(batch: TensorListGPU) -> jax.Array:
    """The batch as an array on its GPU: JAX's streams wait for it, the program does not."""
    array: jax.Array = jax.dlpack.from_dlpack(batch.as_tensor())
    wanted = jax.dtypes.canonicalize_dtype(array.dtype)
    # Types of 64 bits become those of 32 unless `jax_enable_x64` is set, as everywhere in JAX.
    return array if array.dtype == wanted else array.astype(wanted)


def put(rows: np.ndarray | jax.Array, target: Any) -> jax.Array:
    """`rows` on a device, or cut by a sharding.

    Memory of the host is shared with JAX's CPU devices if it is aligned, and goes back to its pool
    when the array is gone. To other devices it is copied, without waiting.
    """
    if isinstance(rows, np.ndarray):
        if isinstance(target, jax.Device):
            return from_host(rows.shape, only_on(target), lambda _: rows)
        return from_host(rows.shape, target, rows.__getitem__)
    if isinstance(target, jax.Device) and rows.device == target:
        return rows
    array: jax.Array = jax.device_put(rows, target)
    return array


def from_host(
    shape: tuple[int, ...], sharding: Sharding, rows_of: Callable[[Any], np.ndarray]
) -> jax.Array:
    """An array made of memory of the host; `rows_of` has what an index of it asks for.

    Of JAX's ways to share memory this is the fastest: 9 microseconds for one device and 28 for
    eight, where ``jax.device_put`` takes 20 for each.
    """
    array: jax.Array = jax.make_array_from_callback(shape, sharding, rows_of)
    return array


@functools.lru_cache(maxsize=1024)
def only_on(device: jax.Device) -> SingleDeviceSharding:
    """The sharding that puts all of an array on one device."""
    return SingleDeviceSharding(device)


def joined(parts: list[Any]) -> np.ndarray | jax.Array:
    """Parts of a batch in one piece, one after the other; on the host, or on the first's device.

    A copy.
    """
    if all(isinstance(part, np.ndarray) for part in parts):
        return np.concatenate(parts)
    device = parts[0].device
    return jax.numpy.concatenate([put(part, device) for part in parts])


def host_device() -> jax.Device:
    """The device of JAX that shares the host's memory; its first device where it has none."""
    try:
        return jax.local_devices(backend="cpu")[0]
    except RuntimeError:  # JAX was told to do without
        return jax.local_devices()[0]
