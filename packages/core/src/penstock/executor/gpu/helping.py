"""What the consumer does of an iteration itself, where it would only wait for another thread."""

from __future__ import annotations

import threading
import weakref
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.executor.executor import Executor
    from penstock.executor.gpu.lane import Lane
    from penstock.executor.iteration import Iteration
    from penstock.executor.lane_side import Place
    from penstock.executor.plan import Plan
    from penstock.tensors.gpu.device import Device

_SOON_SECONDS, _LONG_SECONDS, _REMEMBERED = 0.0005, 0.002, 8
"""What is soon: somewhat longer than it takes to wake a thread and to get the interpreter back from
it, a few times. A mean of so many absences counts, the longest taken for so long, so that a
consumer is not taken for the one and the other in turn.
"""
_MOST_CAUSES = 8


def may_help(plan: Plan) -> bool:
    """Whether the consumer's thread may do what lanes do.

    A Ctrl-C comes up in the consumer's thread, and what it interrupts there is done once more; to
    functions of users, and operators that see iterations in their order, that would be wrong.
    """
    return bool(plan.lanes) and not any(
        node.schema.in_order or node.schema.tells_late
        for stage in plan.stages
        for node in stage.batch_nodes
    )


class Help:
    """The consumer's part in the work of lanes that take nothing but the interpreter's time.

    One thread at a time has the interpreter. To wake that of a lane, to wait, and to be woken by
    it takes the consumer a third of what the lane does for an iteration of few operators. So it
    does that itself where it would wait; and where it was back soon the last times, the
    lane's thread is not even told of an iteration. While the consumer is busy with other things,
    the lane's thread works ahead as ever.

    Parameters
    ----------
    executor
        Whose iterations are taken.
    device
        Its GPU.
    """

    def __init__(self, executor: Executor, device: Device) -> None:
        self._executor = weakref.ref(executor)
        self._runtime = device.runtime
        self._left = 0.0
        self._away = _LONG_SECONDS
        self._thread = 0
        self.is_near = False
        """Whether the consumer was back soon, the last times it had taken an iteration."""
        self.claimed: Iteration | None = None
        """What it is at work on, until that is put down for others; guarded by the executor's lock.
        """
        self.before: Place | None = None
        """Where that was before."""
        self.lane: Lane | None = None
        """On which lane it is."""

    @property
    def is_here(self) -> bool:
        """Whether it is the calling thread that helps."""
        return self._thread == threading.get_ident()

    def came(self, now: float) -> None:
        """Note when the consumer came for an iteration."""
        away = min(now - self._left, _LONG_SECONDS)
        self._away += (away - self._away) / _REMEMBERED
        self.is_near = self._away < _SOON_SECONDS

    def went(self, now: float) -> None:
        """Note when it got one."""
        self._left = now

    def give(self, iteration: Iteration) -> None:
        """Go on with the oldest iteration on its lanes, in the consumer's thread.

        Raises
        ------
        KeyboardInterrupt
            The iteration is then where it was.
        """
        if iteration.done:
            return
        executor = self._executor()
        assert executor is not None
        try:
            with self._runtime.active():
                self._thread = threading.get_ident()
                while (lane := executor.take_for_consumer(iteration)) is not None:
                    begun = executor.run_on_lane(iteration, lane)
                    if begun is not None:
                        executor.end_on_lane(iteration, lane, begun)
            if iteration.error is not None:
                interruption = _interruption(iteration.error)
                if interruption is not None:
                    raise interruption
        except BaseException:
            if self.claimed is iteration and _is_lost(iteration):
                assert self.before is not None
                assert self.lane is not None
                executor.take_back(iteration, self.before, self.lane)
            raise
        finally:
            self._thread = 0
            self.claimed = None


def _is_lost(iteration: Iteration) -> bool:
    """Whether nobody would go on with an iteration that was left as it is now."""
    error = iteration.error
    return not iteration.done or (error is not None and _interruption(error) is not None)


def _interruption(error: BaseException) -> KeyboardInterrupt | None:
    """The Ctrl-C that an error came of, if any."""
    found: BaseException | None = error
    for _ in range(_MOST_CAUSES):  # causes may go round: errors are raised from themselves
        if found is None or isinstance(found, KeyboardInterrupt):
            return found
        found = found.__cause__
    return None
