"""What handing batches to JAX costs, beside copying them.

    hatch run bench:jax

On the CPU, with eight virtual devices. Two figures:

* handing over: a batch of 38.5 MB that is ready, relative to a copy in NumPy;
* the iterator: what a step takes beyond what the pipelines take to give their batches.

The cases take turns; of each, the median of all rounds counts, in microseconds.
"""

from __future__ import annotations

import argparse
import os
import statistics
import time
import warnings
from collections.abc import Callable
from typing import Any

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=8"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from headrace import fn
from headrace.pipeline import Pipeline
from headrace.plugin.jax import DALIGenericIterator
from headrace.tensors.pool import HOST_POOL

SAMPLES, SHAPE = 64, (224, 224, 3)
NAMES = ["images", "labels"]


def _pipeline(batch_size: int, sample: tuple[int, ...], outputs: int = 2) -> Pipeline:
    """Gives the same images and labels for ever, in memory as operators take it, without a copy."""
    images = HOST_POOL.empty((batch_size, *sample), np.float32)
    labels = HOST_POOL.empty((batch_size, 1), np.int32)
    images[:], labels[:] = 0, 0
    pipe = Pipeline(batch_size, 1, None, prefetch_queue_depth=2)
    with pipe:
        both = fn.external_source(source=lambda: (images, labels), num_outputs=2, no_copy=True)
        pipe.set_outputs(*both[:outputs])
    return pipe


def _sharding(count: int) -> NamedSharding:
    return NamedSharding(Mesh(np.array(jax.devices()[:count]), ("batch",)), PartitionSpec("batch"))


def _medians(cases: dict[str, Callable[[], float]], rounds: int) -> dict[str, float]:
    """Microseconds that each case says it took, the median of all rounds."""
    found: dict[str, list[float]] = {name: [] for name in cases}
    for _ in range(rounds):
        for name, measured in cases.items():
            found[name].append(measured() * 1e6)
    return {name: statistics.median(times) for name, times in found.items()}


def _timed(call: Callable[[], Any], repeat: int = 50) -> Callable[[], float]:
    """The median of so many calls, in seconds."""

    def measured() -> float:
        times = []
        for _ in range(repeat):
            start = time.perf_counter()
            call()
            times.append(time.perf_counter() - start)
        return statistics.median(times)

    measured()
    return measured


def handing_over(rounds: int) -> None:
    """A batch of 38.5 MB that is ready."""
    cases: dict[str, Callable[[], float]] = {}
    for title, count, pipelines in (
        ("one device", 1, 1),
        ("eight devices, one pipeline, split", 8, 1),
        ("eight devices, eight pipelines", 8, 8),
    ):
        pipes = [_pipeline(SAMPLES // pipelines, SHAPE, outputs=1) for _ in range(pipelines)]
        it = _iterator(pipes, count)
        batches = it._take()
        cases[title] = _timed(lambda it=it, batches=batches: it._assemble(batches))
    images = np.zeros((SAMPLES, *SHAPE), np.float32)
    target = np.empty_like(images)
    cases["a copy, into memory that is there"] = _timed(lambda: np.copyto(target, images), 5)
    cases["a copy, into new memory"] = _timed(images.copy, 5)
    medians = _medians(cases, rounds)
    copy = medians["a copy, into memory that is there"]
    print(f"Handing over a batch of {images.nbytes / 1e6:.1f} MB")
    for title, microseconds in medians.items():
        print(f"  {title:40} {microseconds:9.1f} us  {microseconds / copy:7.2%} of a copy")


def _iterator(pipes: list[Pipeline], count: int) -> DALIGenericIterator:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a size in place of a reader
        return DALIGenericIterator(
            pipes,
            NAMES[: pipes[0].num_outputs],
            size=2**40,
            sharding=_sharding(count) if count > 1 else None,
        )


def _step(it: DALIGenericIterator) -> Callable[[], float]:
    """Time of a step, without waiting for the pipelines: their batches are ready."""
    next(it)

    def measured() -> float:
        _settle(it)
        start = time.perf_counter()
        batch = next(it)
        taken = time.perf_counter() - start
        del batch
        return taken

    return measured


def _fetch(it: DALIGenericIterator) -> Callable[[], float]:
    """Time of the pipelines alone: taking the outputs of each, and asking for the next."""

    def measured() -> float:
        _settle(it)
        start = time.perf_counter()
        for pipe in it._pipes:
            outputs: Any = pipe.share_outputs()
            pipe.release_outputs()
            pipe.schedule_run()
        taken = time.perf_counter() - start
        del outputs
        return taken

    return measured


def _settle(it: DALIGenericIterator) -> None:
    """Wait until all pipelines have their next batch."""
    for pipe in it._pipes:
        executor: Any = pipe._executor
        while not executor._schedule.queue[-1].done:
            time.sleep(1e-4)


def iterators(rounds: int) -> None:
    """What a step takes beyond the pipelines."""
    print("A step, with batches that are ready")
    for title, count, pipelines in (
        ("one device", 1, 1),
        ("eight devices, one pipeline, split", 8, 1),
        ("eight devices, eight pipelines", 8, 8),
    ):
        it = _iterator([_pipeline(SAMPLES // pipelines, (8,)) for _ in range(pipelines)], count)
        medians = _medians({"step": _step(it), "fetch": _fetch(it)}, rounds * 10)
        step, fetch = medians["step"], medians["fetch"]
        print(
            f"  {title:40} {step:9.1f} us, of which pipelines {fetch:7.1f} us, "
            f"the iterator adds {step - fetch:7.1f} us"
        )


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--rounds", type=int, default=30)
    options = parser.parse_args()
    print(f"JAX {jax.__version__}, {len(jax.devices())} devices\n")
    handing_over(options.rounds)
    print()
    iterators(options.rounds)


if __name__ == "__main__":
    main()
