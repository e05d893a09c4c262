"""Assembly of a step's batches into a dictionary of JAX's arrays for the user."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Protocol

import jax
import numpy as np

from headrace.errors import ShapeError
from headrace.plugin.jax.batch_sharding import BatchSharding, OutputShardings
from headrace.plugin.jax.convert import from_host, host_device, joined, put, to_rows

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.plugin.base_iterator import PipelineBatch

    Rows = np.ndarray | jax.Array


class Assembly(Protocol):
    """Makes one array of each output."""

    def array(self, name: str, parts: list[Rows], *, whole: bool) -> jax.Array:
        """The array of output `name`."""
        ...

    def flags(self, parts: list[np.ndarray]) -> jax.Array:
        """One array of what is known of each sample of the pipelines' batches."""
        ...


def count_of(batch: PipelineBatch) -> int:
    """Number of its samples that are handed out."""
    return batch.kept if isinstance(batch.kept, int) else len(batch.kept)


def assembled(
    assembly: Assembly, names: Sequence[str], batches: list[PipelineBatch], pipelines: int
) -> dict[str, Any]:
    """The arrays of one step, by the names of the outputs; lists of side data."""
    counts = {count_of(batch) for batch in batches}
    whole = len(counts) == 1 and len(batches) == pipelines
    found: dict[str, Any] = {}
    for i, name in enumerate(names):
        parts = [to_rows(b.outputs[i], b.kept, name) for b in batches]
        if isinstance(parts[0], list):
            order = getattr(assembly, "_order", range(len(parts)))
            found[name] = [value for k in order if k < len(parts) for value in parts[k]]
        else:
            found[name] = assembly.array(name, parts, whole=whole)
    return found


class OnItsDevice:
    """The batch of one pipeline, where it is."""

    def __init__(self) -> None:
        self._host = host_device()

    def array(self, name: str, parts: list[Rows], *, whole: bool) -> jax.Array:
        """The array of output `name`."""
        (rows,) = parts
        return rows if isinstance(rows, jax.Array) else put(rows, self._host)

    def flags(self, parts: list[np.ndarray]) -> jax.Array:
        """One array of what is known of each sample."""
        return put(parts[0], self._host)


class OnOneDevice:
    """The batches of several pipelines that are all on one device.

    `stacked`: true if each keeps to itself, ``(pipelines, batch, ...)``, or they follow one
    another.
    """

    def __init__(self, *, stacked: bool) -> None:
        self._host = host_device()
        self._stacked = stacked

    def array(self, name: str, parts: list[Rows], *, whole: bool) -> jax.Array:
        """The array of output `name`."""
        if not self._stacked:
            rows = joined(parts)
        elif all(isinstance(part, np.ndarray) for part in parts):
            rows = np.stack(parts)
        else:
            rows = jax.numpy.stack(parts)
        return rows if isinstance(rows, jax.Array) else put(rows, self._host)

    def flags(self, parts: list[np.ndarray]) -> jax.Array:
        """One array of what is known of each sample."""
        return self.array("", list(parts), whole=True)


class Sharded:
    """Arrays over several devices, one pipeline for each part of the batch.

    Where the last batch of an epoch has not as many rows for all parts, its rows are shared out
    anew; and if they do not go up, all devices get all of them.

    `stacked`: true if each part has an axis of its own, ``(parts, batch, ...)``.
    """

    def __init__(self, shardings: OutputShardings, order: list[int], *, stacked: bool) -> None:
        self._shardings = shardings
        self._order = order
        self._stacked = stacked
        self.is_local = shardings.finest.is_local

    def array(self, name: str, parts: list[Rows], *, whole: bool) -> jax.Array:
        """The array of output `name`."""
        wanted = self._shardings.of[name]
        if not whole:
            found = [parts[k] for k in self._order if k < len(parts)]
            return shared_out(joined([part for part in found if len(part)]), wanted, name)
        parts = [parts[k] for k in self._order]
        check_shapes(name, parts)
        if self._stacked:
            parts = [part[None] for part in parts]
        return global_array(parts, wanted, self._shardings.finest)

    def flags(self, parts: list[np.ndarray]) -> jax.Array:
        """One array of what is known of each sample."""
        ordered = [parts[k] for k in self._order]
        return of_parts([p[None] if self._stacked else p for p in ordered], self._shardings.finest)


class Split:
    """Arrays over several devices, cut out of the batch of one pipeline.

    `stacked`: true if each part has an axis of its own, ``(parts, batch, ...)``.
    """

    def __init__(self, shardings: OutputShardings, *, stacked: bool) -> None:
        self._shardings = shardings
        self._stacked = stacked
        self.is_local = shardings.finest.is_local

    def array(self, name: str, parts: list[Rows], *, whole: bool) -> jax.Array:
        """The array of output `name`."""
        (rows,) = parts
        finest, wanted = self._shardings.finest, self._shardings.of[name]
        if self.is_local and not self._stacked:
            return shared_out(rows, wanted, name)
        count = len(finest.parts)
        size, rest = divmod(len(rows), count)
        if rest:
            raise _indivisible(name, len(rows), finest)
        parts = [rows[k * size : (k + 1) * size] for k in range(count)]
        if self._stacked:
            parts = [part[None] for part in parts]
        return global_array(parts, wanted, finest)

    def flags(self, parts: list[np.ndarray]) -> jax.Array:
        """One array of what is known of each sample."""
        finest = self._shardings.finest
        cut = np.split(parts[0], len(finest.parts))
        return of_parts([p[None] if self._stacked else p for p in cut], finest)


def global_array(parts: list[Rows], wanted: BatchSharding, finest: BatchSharding) -> jax.Array:
    """The array, sharded as `wanted`, of which this process has these parts of the finest cut."""
    if wanted.cuts_like(finest):
        return of_parts(parts, wanted)
    array = of_parts(parts, finest)
    target = wanted.for_ndim(array.ndim)
    if wanted.is_local:
        return put(array, target)
    found: jax.Array = _resharding(target)(array)
    return found


def of_parts(parts: list[Rows], wanted: BatchSharding) -> jax.Array:
    """The array of these rows for the parts of this process."""
    size = len(parts[0])
    shape = (size * wanted.count, *parts[0].shape[1:])
    sharding = wanted.for_ndim(len(shape))
    if all(isinstance(part, np.ndarray) for part in parts):
        first: dict[int, Any] = {
            part.number * size: rows for part, rows in zip(wanted.parts, parts, strict=True)
        }
        return from_host(shape, sharding, lambda index: first[index[0].start or 0])
    return jax.make_array_from_single_device_arrays(
        shape,
        sharding,
        [
            put(rows, wanted.target(device))
            for rows, part in zip(parts, wanted.parts, strict=True)
            for device in part.devices
        ],
    )


def shared_out(rows: Rows, wanted: BatchSharding, name: str) -> jax.Array:
    """An array of these rows, cut if they go up, else whole on all devices."""
    if not wanted.is_local:
        raise _indivisible(name, len(rows), wanted)
    if len(rows) % wanted.count:
        return put(rows, wanted.replicated())
    return put(rows, wanted.for_ndim(rows.ndim))


_reshardings: dict[Any, Any] = {}


def _resharding(target: Any) -> Any:
    """A compiled function that brings an array over several processes to another sharding."""
    found = _reshardings.get(target)
    if found is None:
        found = _reshardings[target] = jax.jit(lambda array: array, out_shardings=target)
    return found


def _indivisible(name: str, rows: int, wanted: BatchSharding) -> ShapeError:
    return ShapeError(
        f'Output "{name}" has {rows} rows in this step, which do not go up in the '
        f"{wanted.count} parts that devices of several processes wait for. Let all batches be "
        "full: with LastBatchPolicy.FILL or DROP, and a source that gives whole batches."
    )


def check_shapes(name: str, parts: Sequence[Rows]) -> None:
    """Check that parts of one array have one shape."""
    shapes = {part.shape for part in parts}
    if len(shapes) > 1:
        raise ShapeError(
            f'The pipelines gave output "{name}" in different shapes: {sorted(shapes)}. One array '
            "over all devices needs samples of one shape: `fn.resize`, `fn.crop` or `fn.pad` "
            "makes them so."
        )
