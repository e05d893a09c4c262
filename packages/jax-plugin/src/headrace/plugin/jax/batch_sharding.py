"""Partition of a batch by a sharding: its parts, and the devices of each."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, NamedTuple

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec, Sharding, SingleDeviceSharding

from headrace.errors import ArgumentTypeError, ArgumentValueError

PMAP_AXIS = "devices"
"""Name of the one axis of the mesh that stands for a list of devices."""


class BatchPart(NamedTuple):
    """One part of the global batch.

    `number`: its place among all parts, along the batch. `devices`: those of this process that want
    it; more than one where it is replicated. `shared`: whether other processes want it, too.
    """

    number: int
    devices: tuple[jax.Device, ...]
    shared: bool


@dataclass(frozen=True)
class BatchSharding:
    """A sharding of arrays whose first axis counts the samples, and no other axis is cut.

    `sharding`: as the user gave it. `count`: into how many parts the global batch is cut. `parts`:
    those that devices of this process want, in their order along the batch.
    """

    sharding: Sharding
    count: int
    parts: tuple[BatchPart, ...]

    @property
    def devices(self) -> list[jax.Device]:
        """The devices of this process, each once, in the order of the parts."""
        return [device for part in self.parts for device in part.devices]

    @property
    def is_local(self) -> bool:
        """True if no other process takes part."""
        return self.sharding.is_fully_addressable

    def for_ndim(self, ndim: int) -> Sharding:
        """The sharding of arrays with `ndim` axes."""
        shape = getattr(self.sharding, "shape", None)
        if type(self.sharding).__name__ == "PositionalSharding" and len(shape or ()) != ndim:
            reshape: Any = self.sharding
            return reshape.reshape(self.count, *[1] * (ndim - 1))  # type: ignore[no-any-return]
        return self.sharding

    def target(self, device: jax.Device) -> Any:
        """Target of the part of `device`: the device, or another memory than its usual one."""
        kind = self.sharding.memory_kind
        if kind is None or kind == device.default_memory().kind:
            return device
        return SingleDeviceSharding(device, memory_kind=kind)

    def replicated(self) -> Sharding:
        """A sharding that gives all devices the whole batch."""
        if isinstance(self.sharding, NamedSharding):
            kind = self.sharding.memory_kind
            return NamedSharding(self.sharding.mesh, _spec(), memory_kind=kind)
        return NamedSharding(Mesh(np.array(self.devices), (PMAP_AXIS,)), _spec())

    def cuts_like(self, other: BatchSharding) -> bool:
        """True if all devices get the same part as with `other`."""
        return self.count == other.count and self.parts == other.parts


def _spec(*axes: Any) -> PartitionSpec:
    return PartitionSpec(*axes)  # type: ignore[no-untyped-call]


def over_devices(devices: Sequence[jax.Device]) -> NamedSharding:
    """The sharding that gives each of `devices` one part, in their order."""
    mesh = Mesh(np.array(list(devices)), (PMAP_AXIS,))
    return NamedSharding(mesh, _spec(PMAP_AXIS))


def batch_sharding(sharding: Any, what: str = "`sharding`") -> BatchSharding:
    """`sharding` seen along the batch."""
    if not isinstance(sharding, Sharding):
        raise ArgumentTypeError(
            f"{what} is {sharding!r} of type {type(sharding).__name__}; expected a "
            "`jax.sharding.Sharding`, such as `NamedSharding(mesh, PartitionSpec('batch'))`, or a "
            "dictionary of them by the names in `output_map`."
        )
    rows = len(sharding.device_set)
    rows_of = {
        device: index[0].indices(rows)[:2]
        for device, index in _along_batch(sharding, what).devices_indices_map((rows,)).items()
    }
    starts = sorted({start for start, _ in rows_of.values()})
    here = sharding.addressable_devices
    if not here:
        raise ArgumentValueError(
            f"{what} has none of the devices of this process ({jax.process_index()}): "
            f"{_listed(jax.local_devices())}. Each process that makes an iterator needs one of its "
            "own devices in the mesh."
        )
    parts = []
    for number, start in enumerate(starts):
        wanting = [device for device, (begin, _) in rows_of.items() if begin == start]
        own = tuple(device for device in wanting if device in here)
        if own:
            parts.append(BatchPart(number, own, len(own) < len(wanting)))
    return BatchSharding(sharding, len(starts), tuple(parts))


def _along_batch(sharding: Sharding, what: str) -> Sharding:
    """`sharding` for arrays with one axis."""
    if isinstance(sharding, NamedSharding):
        if not isinstance(sharding.mesh, Mesh):
            raise ArgumentValueError(
                f"{what} has an abstract mesh, which has no devices; give a "
                "`jax.sharding.Mesh(devices, axis_names)`."
            )
        spec = tuple(sharding.spec)
        for axis, names in enumerate(spec[1:], 1):
            if names:
                raise _over_other_axis(what, axis, names, sharding.spec)
        return NamedSharding(sharding.mesh, _spec(*spec[:1]))
    shape = getattr(sharding, "shape", None)
    if type(sharding).__name__ == "PositionalSharding" and shape is not None:
        for axis, extent in enumerate(shape[1:], 1):
            if extent > 1:
                raise _over_other_axis(what, axis, extent, sharding)
        return sharding.reshape(-1)  # type: ignore[attr-defined,no-any-return]
    try:
        sharding.devices_indices_map((len(sharding.device_set),))
    except Exception as error:
        raise ArgumentValueError(
            f"{what} is {sharding!r}, which does not tell how rows of a batch are shared out "
            "among devices. Use `NamedSharding(mesh, PartitionSpec('batch'))`."
        ) from error
    return sharding


def _over_other_axis(what: str, axis: int, names: Any, spec: Any) -> ArgumentValueError:
    return ArgumentValueError(
        f"{what} cuts axis {axis} by {names!r} ({spec}). Pipelines make whole samples, so only "
        "the first axis, the batch, can be sharded: `PartitionSpec('batch')`. Other axes of the "
        "mesh then have copies; `jax.device_put(array, sharding)` cuts arrays further, on the "
        "devices."
    )


def _listed(devices: Sequence[jax.Device]) -> str:
    return ", ".join(map(str, devices))


@dataclass(frozen=True)
class OutputShardings:
    """The shardings of all outputs.

    `of`: by the names of the outputs. `finest`: the one that cuts the batch into most parts: its
    parts are the shards of the data set.
    """

    of: dict[str, BatchSharding]
    finest: BatchSharding


def output_shardings(sharding: Any, names: Sequence[str]) -> OutputShardings:
    """The sharding of each output."""
    if not isinstance(sharding, Mapping):
        one = batch_sharding(sharding)
        return OutputShardings(dict.fromkeys(names, one), one)
    if set(sharding) != set(names):
        raise ArgumentValueError(
            f"`sharding` is a dictionary with the keys {sorted(map(str, sharding))}, but the "
            f"outputs are {list(names)}: give one for each name in `output_map`. "
            "`NamedSharding(mesh, PartitionSpec())` replicates an output."
        )
    found = {name: batch_sharding(sharding[name], f'`sharding` of "{name}"') for name in names}
    finest = max(found.values(), key=lambda s: s.count)
    for name, one in found.items():
        if one.sharding.device_set != finest.sharding.device_set:
            raise ArgumentValueError(
                f'The `sharding` of "{name}" is over other devices than that of another output: '
                f"{_listed(sorted(one.sharding.device_set, key=lambda d: d.id))} and "
                f"{_listed(sorted(finest.sharding.device_set, key=lambda d: d.id))}. All outputs "
                "of an iterator go to the same devices."
            )
    return OutputShardings(found, finest)
