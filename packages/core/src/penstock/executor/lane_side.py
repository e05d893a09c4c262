"""What an executor does for the lanes of a GPU: who goes on with an iteration that came to one."""

from __future__ import annotations

import threading
from abc import ABC, abstractmethod
from collections import deque
from typing import TYPE_CHECKING, Any

from penstock.executor.turns import is_early

if TYPE_CHECKING:
    from penstock.executor.cpu.program import Program
    from penstock.executor.cpu.worker import Gate
    from penstock.executor.gpu.helping import Help
    from penstock.executor.gpu.lane import Begun, Lane
    from penstock.executor.iteration import Iteration
    from penstock.executor.programs import Programs
    from penstock.executor.sources.reading import Reading
    from penstock.executor.stages import Stages

    Place = tuple[bool, int, int, str]
    """Where an iteration is while nobody is at work on it: whether it is begun, its stage, the last
    that is complete, and the lane it waits for.
    """


class LaneSide(ABC):
    """The part of an executor that threads of lanes call, and whoever does their work."""

    gate: Gate
    help: Help | None
    """The consumer's part in the work of lanes, where it may have one."""
    _lock: Any
    _queue: deque[Iteration]
    _beginning: bool
    _cancelling: bool
    _finished: threading.Condition
    _in_order: set[int]
    _lanes: dict[str, Lane]
    _programs: Programs
    _shares_lanes: bool
    _stages: Stages
    _first_lane: str

    @abstractmethod
    def _begin(self, iteration: Iteration) -> None:
        """Draw from the readers and make the first stage ready."""

    @abstractmethod
    def _may_begin(self) -> bool:
        """Whether an iteration may begin now. Holds the lock."""

    @abstractmethod
    def _advance(self, iteration: Iteration) -> None:
        """Find out whether an iteration's stage is complete, and go on. Holds the lock."""

    @abstractmethod
    def _settle(self, iteration: Iteration, following: Program | str | None) -> None:
        """Put down what comes next: samples, a lane, ... Holds the lock."""

    @abstractmethod
    def _wake_worker(self) -> None:
        """Have one more worker look for something to do, if there is. Holds the lock."""

    def _wake_lane(self, lane: str) -> None:
        """Have an iteration looked at that has come to `lane`. Holds the lock."""
        # Who is about to look for more to do finds it, at no cost.
        if self._shares_lanes:
            looks = (self.help is not None and self.help.is_here) or getattr(
                threading.current_thread(), "takes_lanes", False
            )
        else:
            looks = lane == "gpu" and getattr(threading.current_thread(), "ends_stages", False)
        if not looks:
            self.gate.lanes[lane].notify()

    def find_shared_task(self) -> tuple[Iteration, Lane] | None:
        """An iteration that has come to a lane, where any thread may go on with it. Holds the
        lock.
        """
        if self._shares_lanes:
            for name, lane in self._lanes.items():
                iteration = None if lane.busy else self._come_to(name)
                if iteration is not None:
                    return iteration, lane
        return None

    def find_lane_task(self, lane: str) -> Iteration | None:
        """The oldest iteration that has come to `lane`, or that begins there. Holds the lock."""
        if not self._lanes[lane].busy:
            iteration = self._come_to(lane)
            if iteration is not None:
                return iteration
        if self._first_lane == lane:
            for iteration in self._queue:
                if not iteration.begun and self._may_begin():
                    self._beginning = True
                    iteration.begun = True
                    return iteration
            for iteration in self._queue:
                reading = iteration.reading
                if reading is not None and not reading.is_awaited:
                    reading.is_awaited = True
                    return iteration
        return None

    def _come_to(self, lane: str) -> Iteration | None:
        """The oldest iteration that has come to `lane`. Holds the lock."""
        for iteration in self._queue:
            if iteration.waiting == lane and iteration.error is None:
                number = iteration.stage + 1
                if number in self._in_order and is_early(self._queue, iteration, number):
                    continue
                iteration.waiting = ""
                iteration.in_flight += 1
                iteration.stage += 1
                # The thread that waits for decoders goes on there, too.
                self._lanes[lane].busy = self._shares_lanes or lane == "gpu"
                return iteration
        return None

    def take_for_consumer(self, iteration: Iteration) -> Lane | None:
        """Have the consumer go on with the oldest iteration, or begin it.

        Returns
        -------
        Its lane, or that where it begins; `None` if somebody else was quicker.
        """
        with self._lock:
            help = self.help
            if help is None or self.gate.closed or not self.may_be_taken(iteration):
                return None
            lane = self._lanes[iteration.waiting or self._first_lane]
            help.before = iteration.begun, iteration.stage, iteration.passed, iteration.waiting
            help.lane = lane
            # Nothing is called from here on: a Ctrl-C comes before all of it, or behind.
            help.claimed = iteration
            if iteration.begun:
                iteration.waiting = ""
                iteration.in_flight += 1
                iteration.stage += 1
                lane.busy = True
            else:
                self._beginning = True
                iteration.begun = True
            return lane

    def may_be_taken(self, iteration: Iteration) -> bool:
        """Whether the oldest iteration waits for somebody to go on with it on a lane. Holds the
        lock.
        """
        if iteration.begun:
            waiting = iteration.waiting
            return bool(waiting) and not self._lanes[waiting].busy and iteration.error is None
        return bool(self._first_lane) and not iteration.done and self._may_begin()

    def take_back(self, iteration: Iteration, before: Place, lane: Lane) -> None:
        """Put an iteration back to where it was before the consumer, interrupted, took it."""
        with self._lock:
            iteration.begun, iteration.stage, iteration.passed, iteration.waiting = before
            iteration.in_flight = 0
            iteration.program = None
            iteration.error = None
            iteration.done = False
            if iteration.begun:
                lane.busy = False
            else:
                self._beginning = False
            self.gate.lanes[lane.name].notify_all()

    def run_on_lane(self, iteration: Iteration, lane: Lane) -> Begun | None:
        """Queue a stage of an iteration on the GPU, in whatever thread has it; or begin it.

        The device is current in that thread.

        Returns
        -------
        What `end_on_lane` is to be called with, where operators wait for something; else `None`.
        """
        if iteration.stage < 0:
            self._begin(iteration)
            return None
        if iteration.reading is not None:
            self._end_reading(iteration, iteration.reading)
            return None
        try:
            program = self._programs.on_gpu(iteration, iteration.stage)
            begun = lane.begin(program, iteration, defer=lane.name == "mixed")
        except BaseException as error:  # whatever it is, somebody waits for this iteration
            self._leave_lane(iteration, lane, error)
            return None
        if begun.deferred:
            return begun
        self.end_on_lane(iteration, lane, begun)
        return None

    def _end_reading(self, iteration: Iteration, reading: Reading) -> None:
        """Wait until the samples of an iteration are read, and go on with it."""
        failed: BaseException | None = None
        left: list[int] = []
        try:
            left = reading.wait()
        except BaseException as error:  # whatever it is, somebody waits for this iteration
            failed = error
        with self._lock:
            iteration.in_flight -= 1
            iteration.reading = None
            iteration.program = reading.program
            if iteration.error is None:
                iteration.error = failed
                iteration.queue = left[::-1]
            self._advance(iteration)
            if left:
                self._wake_worker()
            if self._cancelling:
                self._finished.notify_all()

    def end_on_lane(self, iteration: Iteration, lane: Lane, begun: Begun) -> None:
        """End a stage that `run_on_lane` has begun."""
        failed: BaseException | None = None
        try:
            lane.end(iteration, begun)
        except BaseException as error:  # whatever it is, somebody waits for this iteration
            failed = error
        self._leave_lane(iteration, lane, failed)

    def run_on_last_lane(self) -> None:
        """Go on with iterations that have come to the lane behind that of decoders."""
        lane = self._lanes.get("gpu")
        while lane is not None:
            with self._lock:
                free = not (lane.busy or self.gate.closed)
                iteration = self._come_to(lane.name) if free else None
            if iteration is None:
                return
            self.run_on_lane(iteration, lane)

    def _leave_lane(self, iteration: Iteration, lane: Lane, failed: BaseException | None) -> None:
        """Go on with an iteration whose stage on a lane is queued, or has failed."""
        following: Program | str | None = None
        try:
            if failed is None:
                iteration.passed = iteration.stage
                following = self._stages.following(iteration)
            else:
                following = self._stages.mend(iteration, failed)
                failed = None
        except BaseException as given_up:
            failed = given_up
        with self._lock:
            lane.busy = False
            if self.gate.closed:  # its own thread waits for that
                self.gate.lanes[lane.name].notify_all()
            iteration.in_flight -= 1
            if failed is not None and iteration.error is None:
                iteration.error = failed
            self._settle(iteration, following)
            self._advance(iteration)
            if self.help is not None and self.help.is_here and not self.help.is_near:
                self._wake_left_lanes(iteration)
            if self._cancelling:
                self._finished.notify_all()

    def _wake_left_lanes(self, iteration: Iteration) -> None:
        """Have other iterations looked at that came to a lane while the consumer was at work there.
        Holds the lock.
        """
        for other in self._queue:
            if other.waiting and other is not iteration:
                self.gate.lanes[other.waiting].notify()
