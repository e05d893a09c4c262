"""Memory set aside when a pipeline is built, for batches of sizes that were told ahead."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.executor.memory import Sizes
from headrace.tensors.buffer_sizes import ALIGNMENT_BYTES, BUFFER_SETTINGS, size_class

if TYPE_CHECKING:
    from headrace.executor.memory import PipelineMemory
    from headrace.executor.plan import Plan
    from headrace.tensors.gpu.device import GpuDevice
    from headrace.tensors.pool import HostPool

_BESIDE_THE_QUEUE = 2
"""Batches that the consumer has while the next ones are made: the last one, and the one before it,
to which a variable still refers while the last is asked for."""


def iteration_estimate(plan: Plan, batch_size: int) -> Sizes:
    """Return the memory of an iteration, as far as the user gave hints."""
    on_gpu = sum(size for r, size in plan.hints.items() if plan.on_gpu[r])
    return Sizes((sum(plan.hints.values()) - on_gpu) * batch_size, on_gpu * batch_size)


def reserve(
    plan: Plan,
    batch_size: int,
    depth: int,
    memory: PipelineMemory,
    device: GpuDevice | None,
    *,
    in_processes: bool,
    keeps_outputs: bool = True,
) -> list[Any]:
    """Reserve memory for batches of hinted size, for as long as the result lives; without
    `keeps_outputs`, not for outputs on the host.

    Shared memory of worker processes is a file that is mapped already; see `RemoteRunner` for what
    a size that was told does there.
    """
    wanted: dict[str, int] = {"host": 0, "pinned": 0, "device": 0}
    for r, hint in plan.hints.items():
        kind = "device" if plan.on_gpu[r] else "host"
        if kind == "host" and r in plan.outputs and not keeps_outputs:
            continue
        if kind == "host" and device is not None and plan.uploaded[r] and r not in plan.outputs:
            kind = "pinned"
        growth = BUFFER_SETTINGS.device_growth if kind == "device" else BUFFER_SETTINGS.host_growth
        # Samples may get memory each by itself.
        wanted[kind] += size_class((hint + ALIGNMENT_BYTES) * batch_size, growth)
    pools: dict[str, HostPool | Any] = {}
    if not in_processes:
        pools["host"] = memory.host
    if device is not None:
        pools["device"] = device.memory
        if not in_processes:
            pools["pinned"] = device.pinned
    found = []
    for kind, pool in pools.items():
        size = wanted[kind] * (depth + _BESIDE_THE_QUEUE)
        if not size:
            continue
        try:
            found.append(pool.reserve(size))
        except MemoryError as error:
            raise MemoryError(
                f"`bytes_per_sample` and `bytes_per_sample_hint` ask for {size} bytes of {kind} "
                f"memory, for {depth + _BESIDE_THE_QUEUE} batches of {batch_size} samples, which "
                "are not there. Tell smaller sizes, or none."
            ) from error
    return found
