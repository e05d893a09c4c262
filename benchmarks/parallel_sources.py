"""Parallel external sources: what a second worker brings, and what handing over a batch costs.

    hatch run bench:parallel-sources

Every figure is the best of several rounds, in which the cases take turns: other programs that get
in the way of one round are not in the way of all.
"""

from __future__ import annotations

import argparse
import multiprocessing
import time
from collections.abc import Callable
from typing import Any

import numpy as np

from benchmarks.support.libraries import library

BATCH = 32
PIXELS = (640, 620, 3)


def busy(info: Any) -> np.ndarray:
    """A sample that costs about two milliseconds of pure Python."""
    total = 0
    for k in range(30_000):
        total += k * k
    return np.full((64, 64, 3), total & 255, np.uint8)


def busy_batch(index: int) -> list[np.ndarray]:
    """A batch of them."""
    return [busy(None) for _ in range(BATCH)]


def _pipeline(name: str, source: Callable[..., Any], workers: int, **arguments: Any) -> Any:
    lib = library(name)
    pipe = lib.Pipeline(BATCH, 1, device_id=None, py_num_workers=workers)
    with pipe:
        pipe.set_outputs(lib.fn.external_source(source, **arguments))
    pipe.build()
    return pipe


def _seconds_per_batch(pipe: Any, batches: int) -> float:
    for _ in range(4):
        pipe.run()
    start = time.perf_counter()
    for _ in range(batches):
        pipe.run()
    return (time.perf_counter() - start) / batches


def _best(pipes: dict[str, Any], rounds: int, batches: int) -> dict[str, float]:
    best = dict.fromkeys(pipes, float("inf"))
    for _ in range(rounds):
        for name, pipe in pipes.items():
            best[name] = min(best[name], _seconds_per_batch(pipe, batches))
    return best


def _count(seconds: float, counts: Any) -> None:
    end, count = time.perf_counter() + seconds, 0
    while time.perf_counter() < end:
        busy(None)
        count += 1
    counts.put(count)


def _bare(count: int, seconds: float = 0.5) -> float:
    """Samples a second of `count` processes that do nothing but call the source."""
    context = multiprocessing.get_context("fork")
    counts = context.SimpleQueue()
    started = [context.Process(target=_count, args=(seconds, counts)) for _ in range(count)]
    for process in started:
        process.start()
    total = sum(counts.get() for _ in started)
    for process in started:
        process.join()
    return float(total / seconds)


def workers(rounds: int) -> None:
    """Samples a second of a source that only computes, by the number of workers."""
    print(f"{'a source that computes':34}{'1 worker':>12}{'2 workers':>12}{'gain':>8}")
    bare = [max(_bare(count) for _ in range(rounds)) for count in (1, 2)]
    print(f"  {'bare processes':32}{bare[0]:12.0f}{bare[1]:12.0f}{bare[1] / bare[0]:8.2f}")
    forms: dict[str, tuple[Callable[..., Any], dict[str, Any]]] = {
        "samples": (busy, {"batch": False}),
        "batches": (busy_batch, {"prefetch_queue_depth": 2}),
    }
    for name in ("Headrace", "DALI"):
        for form, (source, arguments) in forms.items():
            pipes = {
                str(count): _pipeline(name, source, count, parallel=True, **arguments)
                for count in (1, 2)
            }
            best = _best(pipes, rounds, 6)
            one, two = BATCH / best["1"], BATCH / best["2"]
            print(f"  {name}, {form:24}{one:12.0f}{two:12.0f}{two / one:8.2f}")


def hand_over(rounds: int) -> None:
    """Milliseconds a batch of 38 MB takes from the source to the output."""
    data = np.random.default_rng(0).integers(0, 255, (BATCH, *PIXELS), np.uint8)
    samples = list(data)
    target = data.copy()
    pipes: dict[str, Any] = {}
    for name in ("Headrace", "DALI"):
        pipes[f"{name}, in the program"] = _pipeline(name, lambda i: samples, 1)
        pipes[f"{name}, process"] = _pipeline(name, lambda i: samples, 1, parallel=True)
    pipes["Headrace, process, one array"] = _pipeline("Headrace", lambda i: data, 1, parallel=True)
    pipes["Headrace, thread"] = _pipeline("Headrace", lambda i: samples, 1, parallel="threads")
    pipes["Headrace, thread, no_copy"] = _pipeline(
        "Headrace", lambda i: samples, 1, parallel="threads", no_copy=True
    )
    best, copy = dict.fromkeys(pipes, float("inf")), float("inf")
    for _ in range(4 * rounds):
        start = time.perf_counter()
        for row, sample in zip(target, samples, strict=True):
            np.copyto(row, sample)
        copy = min(copy, time.perf_counter() - start)
        for name, pipe in pipes.items():
            best[name] = min(best[name], _seconds_per_batch(pipe, 8))
    print(f"{f'a batch of {data.nbytes / 1e6:.0f} MB':34}{'ms':>12}{'copies':>12}")
    print(f"  {'one copy':32}{copy * 1e3:12.2f}{1:12.2f}")
    for name, seconds in best.items():
        print(f"  {name:32}{seconds * 1e3:12.2f}{seconds / copy:12.2f}")


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser()
    parser.add_argument("--rounds", type=int, default=5)
    rounds = parser.parse_args().rounds
    workers(rounds)
    hand_over(rounds)


if __name__ == "__main__":
    main()
