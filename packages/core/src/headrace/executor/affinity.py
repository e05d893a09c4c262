"""Processors that each worker of a pipeline may use, if it is bound to some."""

from __future__ import annotations

import contextlib
import os
import warnings
from dataclasses import dataclass

from headrace.config import affinity_mask
from headrace.graph.user_line import stack_level


@dataclass(frozen=True)
class Affinity:
    """The processors of a pipeline's workers, by their numbers.

    `listed`: for each of the first workers the one processor that it is bound to; `None` for what
    the others have. `others`: those that all other workers share.
    """

    listed: tuple[int | None, ...]
    others: tuple[int, ...]

    def of(self, worker: int) -> tuple[int, ...]:
        """The processors that a worker may use."""
        own = self.listed[worker] if worker < len(self.listed) else None
        return self.others if own is None else (own,)

    def bind(self, worker: int) -> None:
        """Bind the calling thread, which is worker number `worker`."""
        bind(self.of(worker))


def bind(processors: tuple[int, ...]) -> None:
    """Bind the calling thread to processors; to none of them in particular if they are gone."""
    with contextlib.suppress(OSError):  # taken away meanwhile
        os.sched_setaffinity(0, processors)


def find_affinity(workers: int, device_id: int | None) -> Affinity | None:
    """Resolve ``set_affinity=True`` for the current process."""
    if not hasattr(os, "sched_setaffinity"):
        warnings.warn(
            "`set_affinity` has no effect: this system lets no program bind its threads.",
            UserWarning,
            stacklevel=stack_level(),
        )
        return None
    allowed = os.sched_getaffinity(0)
    name, mask = affinity_mask()
    absent = sorted(set(mask[:workers]) - allowed)
    if absent:
        warnings.warn(
            f"{name} has processors that this program may not use: {_text(absent)}; it may use "
            f"{_text(sorted(allowed))}. The workers that should have been bound to them use what "
            "those beyond the list do.",
            UserWarning,
            stacklevel=stack_level(),
        )
    listed = tuple(k if k in allowed else None for k in mask[:workers])
    near: frozenset[int] | set[int] = allowed
    if device_id is not None and (len(listed) < workers or None in listed):
        from headrace.tensors.gpu.nvml import processors_near

        near = (processors_near(device_id) & allowed) or allowed
    return Affinity(listed, tuple(sorted(near)))


def _text(numbers: list[int]) -> str:
    return ", ".join(map(str, numbers))
