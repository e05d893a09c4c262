"""Runs pipelines for a while: batches, epoch after epoch, and how long they take."""

from __future__ import annotations

import statistics
from collections.abc import Callable, Sequence
from time import perf_counter
from typing import Any, NamedTuple

from headrace.cli.finding import CommandError
from headrace.pipeline import Pipeline
from headrace.tensors.gpu.tensor_list import TensorListGPU

_WARM_UP_BATCHES = 2


class Comparison(NamedTuple):
    """Times of two settings of a pipeline, side by side."""

    first: list[float]
    """Samples a second in each round, ..."""
    second: list[float]
    """... and of the other, in the same rounds."""

    @property
    def ratios(self) -> list[float]:
        """Return the speed of the first relative to the second, for each round."""
        return [a / b for a, b in zip(self.first, self.second, strict=True)]

    @property
    def ratio(self) -> float:
        """The median of these."""
        return statistics.median(self.ratios)


def take(pipe: Pipeline) -> tuple[Any, ...]:
    """The next batch, of the next epoch where one has come to its end."""
    try:
        return pipe.run()
    except StopIteration:
        pipe.reset()
    try:
        return pipe.run()
    except StopIteration:
        raise CommandError("The data of the pipeline comes to its end before any batch.") from None


def run(pipe: Pipeline, batches: int, step: Callable[[], object] = int) -> tuple[int, float]:
    """Take batches; return how many samples they have, and how many seconds it took."""
    samples, began = 0, perf_counter()
    outputs: tuple[Any, ...] = ()
    for _ in range(batches):
        outputs = take(pipe)
        samples += len(outputs[0]) if outputs else pipe.max_batch_size
        step()
    for output in outputs:
        if isinstance(output, TensorListGPU):
            output.as_cpu()  # which waits for the GPU
    return samples, perf_counter() - began


def warm(pipe: Pipeline) -> float:
    """Take the first batches; return how long the very first took, with the build."""
    began = perf_counter()
    run(pipe, 1)
    first = perf_counter() - began
    run(pipe, _WARM_UP_BATCHES - 1)
    return first


def measure(
    pipes: Sequence[Pipeline], batches: int, rounds: int, step: Callable[[], object] = int
) -> list[list[float]]:
    """Samples a second of each pipeline, round by round, in turn.

    Turns even out what else the machine is at. What a pipeline has worked on ahead before its turn
    is taken first and does not count.
    """
    rates: list[list[float]] = [[] for _ in pipes]
    for _ in range(rounds):
        for pipe, own in zip(pipes, rates, strict=True):
            executor = pipe._executor
            run(pipe, 0 if executor is None else executor.pending())
            samples, seconds = run(pipe, batches, step)
            own.append(samples / seconds)
    return rates
