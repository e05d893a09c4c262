"""`LoaderEvaluator`: a loader that takes the time, or returns batches that are in memory."""

from __future__ import annotations

import contextlib
import json
import time
import warnings
from collections import deque
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace.errors import ArgumentValueError, UsageError
from headrace.graph.user_line import stack_level
from headrace.tracebacks import public_methods

if TYPE_CHECKING:
    import os


@public_methods
class LoaderEvaluator:
    """Wraps a loader to find out whether a training waits for its data.

    Train once with ``mode="log"`` and once with ``mode="replay"``, which has all batches in memory:
    what the second is faster is what loading costs.

    Parameters
    ----------
    dataloader : iterable
        A `DataLoader` of PyTorch, or any iterable.
    mode : {"log", "replay"}
        Pass the batches on and take the time of each; or iterate over `dataloader` once now, keep
        its last batches, and return these over and over, as many as it has.
    num_cached_batches : int
        How many batches are kept for ``"replay"``.
    metrics_file : path, optional
        Where `save_metrics` writes.

    Raises
    ------
    ArgumentValueError
        If no batches are to be kept.

    Warns
    -----
    UserWarning
        If `mode` is another one, which is taken for ``"log"``.
    """

    def __init__(
        self,
        dataloader: Iterable[Any],
        mode: str = "log",
        num_cached_batches: int = 20,
        metrics_file: str | os.PathLike[str] | None = None,
    ) -> None:
        if mode not in ("log", "replay"):
            warnings.warn(
                f'`mode` is {mode!r}, which is taken for "log"; it can be "log" or "replay".',
                UserWarning,
                stacklevel=stack_level(),
            )
        if num_cached_batches < 1:
            raise ArgumentValueError(
                f"`num_cached_batches` is {num_cached_batches}; it must be positive."
            )
        self.dataloader = dataloader
        self.mode = mode
        self.num_cached_batches = num_cached_batches
        self.metrics_file = metrics_file
        self.cached_batches: deque[Any] = deque(maxlen=num_cached_batches)
        self.batch_times: list[float] = []
        self._seconds = 0.0
        self._count = 0
        """Number of batches that the loader had when they were cached."""
        if mode == "replay":
            for batch in dataloader:
                self.cached_batches.append(batch)
                self._count += 1

    @property
    def cache_ready(self) -> bool:
        """True if there are batches in memory."""
        return bool(self.cached_batches)

    def __len__(self) -> int:
        return self._count if self.mode == "replay" else len(self.dataloader)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[Any]:
        if self.mode == "replay" and not self.cached_batches:
            raise UsageError("No cached batches available: the loader was empty.")
        return self._timed(self._cached() if self.mode == "replay" else iter(self.dataloader))

    def _cached(self) -> Iterator[Any]:
        for number in range(self._count):
            yield self.cached_batches[number % len(self.cached_batches)]

    def _timed(self, batches: Iterator[Any]) -> Iterator[Any]:
        self.batch_times, self._seconds = [], 0.0
        began = time.perf_counter()
        while True:
            asked = time.perf_counter()
            try:
                batch = next(batches)
            except StopIteration:
                self._seconds = time.perf_counter() - began
                return
            self.batch_times.append(time.perf_counter() - asked)
            yield batch

    def get_metrics(self) -> dict[str, Any]:
        """Measurements of the last epoch, times in seconds; empty before one.

        ``batch_times`` is how long each batch was waited for, ``total_time`` includes what was done
        between batches, and is 0 until the epoch has ended.
        """
        times = self.batch_times
        if not times:
            return {}
        return {
            "mode": self.mode,
            "total_batches": len(times),
            "total_time": self._seconds,
            "avg_batch_time": sum(times) / len(times),
            "min_batch_time": min(times),
            "max_batch_time": max(times),
            "batch_times": list(times),
            "cached_batches": len(self.cached_batches),
            "cache_ready": self.cache_ready,
        }

    def save_metrics(self, filename: str | os.PathLike[str] | None = None) -> None:
        """Write `get_metrics` as JSON.

        Parameters
        ----------
        filename
            The file; `metrics_file` when not given.

        Warns
        -----
        UserWarning
            If neither is given: nothing is written.
        """
        filename = self.metrics_file if filename is None else filename
        if filename is None:
            warnings.warn(
                "There is no file to write metrics to: give `filename`.",
                UserWarning,
                stacklevel=stack_level(),
            )
            return
        Path(filename).write_text(json.dumps(self.get_metrics(), indent=2))

    def print_summary(self) -> None:
        """Print what was measured."""
        lines = ["Loader Evaluator Summary:", f"  Mode: {self.mode}"]
        dataset = getattr(self.dataloader, "dataset", None)
        for what, of in (("Dataset size", dataset), ("Number of batches", self)):
            with contextlib.suppress(TypeError):  # the length is unknown
                lines.append(f"  {what}: {len(of)}")  # type: ignore[arg-type]
        lines += [
            f"  Cache size: {len(self.cached_batches)}/{self.num_cached_batches}",
            f"  Cache ready: {self.cache_ready}",
        ]
        metrics = self.get_metrics()
        if metrics:
            lines += [
                f"  Total batches processed: {metrics['total_batches']}",
                f"  Total time: {metrics['total_time']:.2f}s",
                f"  Average batch time: {metrics['avg_batch_time']:.4f}s",
                f"  Min batch time: {metrics['min_batch_time']:.4f}s",
                f"  Max batch time: {metrics['max_batch_time']:.4f}s",
            ]
        print("\n".join(lines))  # noqa: T201
