"""Choice of the way to make arrays, by the pipelines of an iterator and the arrays' devices."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import jax

from headrace.errors import ArgumentValueError
from headrace.plugin.jax.assembly import Assembly, OnItsDevice, OnOneDevice, Sharded, Split
from headrace.plugin.jax.batch_sharding import BatchSharding, output_shardings, over_devices

if TYPE_CHECKING:
    from collections.abc import Sequence

    from headrace.pipeline import Pipeline


def make_assembly(
    pipelines: Sequence[Pipeline],
    names: Sequence[str],
    sharding: Any,
    devices: Sequence[jax.Device] | None,
    pmap_compatible: bool | None,
) -> Assembly:
    """Make the object that turns the batches of these pipelines into arrays."""
    stacked = bool(devices) if pmap_compatible is None else pmap_compatible
    if devices is not None:
        sharding = over_devices(devices)
    if sharding is None:
        if len(pipelines) == 1:
            return OnOneDevice(stacked=True) if stacked else OnItsDevice()
        stacked = pmap_compatible is not False
        own = _gpus_of(pipelines)
        if own is None:
            return OnOneDevice(stacked=stacked)
        sharding = over_devices(own)
    shardings = output_shardings(sharding, names)
    parts = shardings.finest.parts
    if len(pipelines) == 1 and len(parts) > 1:
        if pipelines[0].device_id is not None:
            raise ArgumentValueError(
                f"`sharding` is over {len(parts)} parts of the batch in this process, but there is "
                "one pipeline, on a GPU. Give one pipeline for each part, in a list, with "
                "`num_shards` and `shard_id` for its reader; or one pipeline on the CPU "
                "(`device_id=None`), whose batches are then split among the devices."
            )
        if pipelines[0].max_batch_size % len(parts):
            raise ArgumentValueError(
                f"The batch size {pipelines[0].max_batch_size} of the pipeline is not divisible by "
                f"the {len(parts)} parts that `sharding` cuts it into. Use a multiple of "
                f"{len(parts)}."
            )
        return Split(shardings, stacked=stacked)
    if len(pipelines) != len(parts):
        raise ArgumentValueError(
            f"`sharding` cuts the batch into {len(parts)} parts in this process, but there "
            f"{'is 1 pipeline' if len(pipelines) == 1 else f'are {len(pipelines)} pipelines'}. "
            "Give one pipeline for each part (see `data_iterator`, which makes them), or a single "
            "one on the CPU, whose batches are split."
        )
    return Sharded(shardings, _order(pipelines, shardings.finest), stacked=stacked)


def _gpus_of(pipelines: Sequence[Pipeline]) -> list[jax.Device] | None:
    """The devices of pipelines on a GPU each; None if they share one, or are on the CPU."""
    numbers = [pipeline.device_id for pipeline in pipelines]
    if len(set(numbers)) < len(numbers) or None in numbers:
        return None
    by_number = {d.local_hardware_id: d for d in jax.local_devices(backend="gpu")}
    return [by_number[number] for number in numbers]


def _order(pipelines: Sequence[Pipeline], finest: BatchSharding) -> list[int]:
    """For each part, which pipeline makes it: the one on its device, else the next in the list."""
    by_gpu = {p.device_id: k for k, p in enumerate(pipelines) if p.device_id is not None}
    found = [
        next(
            (by_gpu[d.local_hardware_id] for d in part.devices if d.local_hardware_id in by_gpu), 0
        )
        for part in finest.parts
        if part.devices[0].platform == "gpu"
    ]
    in_turn = list(range(len(pipelines)))
    return found if sorted(found) == in_turn else in_turn


def _number(device: jax.Device) -> int:
    return int(device.local_hardware_id)
