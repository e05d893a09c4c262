"""Devices of an iterator's pipelines, and the part of the data that each reads."""

from __future__ import annotations

import functools
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import jax

from headrace.errors import ArgumentValueError, UsageError
from headrace.pipeline import pipeline_def
from headrace.pipeline.settings import available_cpus
from headrace.plugin.jax.batch_sharding import BatchSharding, output_shardings, over_devices
from headrace.plugin.jax.iterator import check_devices, checked_output_map

if TYPE_CHECKING:
    import inspect

    from headrace.pipeline import Pipeline

DEFAULT_THREADS = 4
"""Number of a pipeline's worker threads, unless given; DALI's default here."""
_SHARD_ARGUMENTS = ("num_shards", "shard_id")


@dataclass(frozen=True)
class PipelinePlace:
    """Device of one pipeline, and the part of the data set that it reads.

    `device_id`: number of its GPU; None for the CPU. `num_shards`, `shard_id`: of how many parts of
    the data set it reads which. `parts`: how many parts of the global batch it makes.
    """

    device_id: int | None
    num_shards: int = 1
    shard_id: int = 0
    parts: int = 1


class Placement:
    """Devices and shards of an iterator's pipelines."""

    def __init__(
        self,
        output_map: Sequence[str],
        sharding: Any,
        devices: Sequence[jax.Device] | None,
        split_batches: bool,
    ) -> None:
        self.names = checked_output_map(output_map)
        check_devices(sharding, devices)
        self.sharding = sharding
        self.devices = None if devices is None else list(devices)
        self.finest: BatchSharding | None = None
        self._split = split_batches
        wanted = sharding if self.devices is None else over_devices(self.devices)
        if wanted is not None:
            self.finest = output_shardings(wanted, self.names).finest
        elif split_batches:
            raise ArgumentValueError(
                "`split_batches` needs the devices among which to split: give `sharding` or "
                "`devices`."
            )

    def pipelines(
        self,
        function: Callable[..., Any],
        own: Mapping[str, inspect.Parameter],
        args: tuple[Any, ...],
        kwargs: dict[str, Any],
        checkpoints: Sequence[bytes] | None,
    ) -> list[Pipeline]:
        """The pipelines for one call of the decorated function."""
        name = getattr(function, "__name__", repr(function))
        places = self._places(name, own, kwargs)
        if checkpoints is not None and len(checkpoints) != len(places):
            raise UsageError(
                f"`checkpoints` has {len(checkpoints)} elements for {len(places)} pipelines. Give "
                "what the method `checkpoints` of an iterator over as many devices returned."
            )
        settings = {k: v for k, v in kwargs.items() if k not in own}
        settings.setdefault("num_threads", self._threads(places))
        if self.finest is not None:
            settings["batch_size"] = self._batch_size(name, settings.get("batch_size"), places[0])
        made = []
        for number, place in enumerate(places):
            settings["device_id"] = place.device_id
            if checkpoints is not None:
                settings["checkpoint"] = checkpoints[number]
                settings.setdefault("enable_checkpointing", True)
            given = {k: v for k, v in kwargs.items() if k in own}
            if self.finest is not None:
                given |= {k: getattr(place, k) for k in _SHARD_ARGUMENTS if k in own}
            if "device_id" in own:
                given["device_id"] = place.device_id
            made.append(_pipeline(function, args, given, settings))
        return made

    def _places(
        self, name: str, own: Mapping[str, inspect.Parameter], kwargs: dict[str, Any]
    ) -> list[PipelinePlace]:
        if self.finest is None:
            return [PipelinePlace(kwargs["device_id"] if "device_id" in kwargs else first_gpu())]
        if kwargs.get("device_id") is not None:
            raise ArgumentValueError(
                f"`device_id` is {kwargs['device_id']!r}, but `sharding` or `devices` says which "
                "GPUs to use. Leave it out, or give None for pipelines on the CPU."
            )
        given = [k for k in _SHARD_ARGUMENTS if k in kwargs]
        if given:
            raise ArgumentValueError(
                f"`{given[0]}` follows from `sharding` or `devices`; leave it out of the call."
            )
        places = self._split_places() if self._split else self._shard_places(kwargs)
        missing = [f"`{k}`" for k in _SHARD_ARGUMENTS if k not in own]
        if places[0].num_shards > 1 and missing:
            raise ArgumentValueError(
                f"`{name}` feeds {places[0].num_shards} shards, but has no parameter "
                f"{' and '.join(missing)}, so all of them would read the same. Write "
                f"`def {name}(..., num_shards, shard_id)` and hand both on to the reader: "
                "`fn.readers.file(..., num_shards=num_shards, shard_id=shard_id)`. Or, for one "
                "pipeline whose batches are split among the devices, use `split_batches=True`."
            )
        if kwargs.get("seed") is None and any(part.shared for part in self.finest.parts):
            raise ArgumentValueError(
                "`seed` is needed: devices of several processes have copies of the same part of "
                "the batch, so these processes have to draw the same random numbers."
            )
        return places

    def _shard_places(self, kwargs: dict[str, Any]) -> list[PipelinePlace]:
        assert self.finest is not None
        on_cpu = "device_id" in kwargs
        return [
            PipelinePlace(
                None if on_cpu else _gpu_of(part.devices[0]), self.finest.count, part.number
            )
            for part in self.finest.parts
        ]

    def _split_places(self) -> list[PipelinePlace]:
        """One pipeline on the CPU, for all parts of this process."""
        finest = self.finest
        assert finest is not None
        own = [part.number for part in finest.parts]
        count = len(own)
        if finest.count % count or own != list(range(own[0], own[0] + count)) or own[0] % count:
            raise ArgumentValueError(
                f"`split_batches`: the devices of this process want the parts {own} of "
                f"{finest.count}, which are no section of the batch. Order the devices of the "
                "mesh by their process."
            )
        return [PipelinePlace(None, finest.count // count, own[0] // count, count)]

    def _batch_size(self, name: str, batch_size: Any, place: PipelinePlace) -> int:
        assert self.finest is not None
        count = self.finest.count
        if batch_size is None:
            raise ArgumentValueError(
                f"The batch size must be set: {name}(..., batch_size=...), a multiple of {count}."
            )
        if batch_size % count:
            raise ArgumentValueError(
                f"`batch_size`={batch_size} is not divisible by the {count} parts that the batch "
                f"is cut into. It is the size of the global batch; use a multiple of {count}, such "
                f"as {max(count, batch_size - batch_size % count)}."
            )
        return int(batch_size) // count * place.parts

    def _threads(self, places: list[PipelinePlace]) -> int:
        if len(places) == 1 or places[0].device_id is not None:
            return DEFAULT_THREADS
        return max(1, min(DEFAULT_THREADS, available_cpus() // len(places)))


def _pipeline(
    function: Callable[..., Any],
    args: tuple[Any, ...],
    own: dict[str, Any],
    settings: dict[str, Any],
) -> Pipeline:
    if getattr(function, "_is_pipeline_def", False):
        own = {k: v for k, v in own.items() if k not in settings}
        return function(*args, **own, **settings)  # type: ignore[no-any-return]
    # As a function without arguments, so that none of them can be taken for the pipeline's.
    bound = functools.update_wrapper(functools.partial(function, *args, **own), function)
    return pipeline_def(bound, **settings)()


def first_gpu() -> int | None:
    """Number of the first GPU of JAX; None if it has none."""
    try:
        return _gpu_of(jax.local_devices(backend="cuda")[0])
    except RuntimeError:
        return None


def _gpu_of(device: jax.Device) -> int | None:
    """Number of a device of JAX as CUDA counts them; None if it is no GPU."""
    return int(device.local_hardware_id) if device.platform == "gpu" else None
