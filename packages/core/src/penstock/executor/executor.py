"""Runs iterations of a plan ahead of the consumer, on a pool of threads.

Iterations begin in order; their samples are handed out one by one, those of the oldest iteration
first. A thread that finds no sample left in the oldest iteration goes on with the next one, so no
thread waits for the last sample of a batch.
"""

from __future__ import annotations

import threading
import time
from collections import deque
from typing import TYPE_CHECKING, Any

from penstock.errors import BadSampleError, EndOfData, UsageError
from penstock.executor.cpu.chunks import chunk_size
from penstock.executor.cpu.runner import SampleRunner
from penstock.executor.cpu.worker import Gate, Worker, forks, interruption, join
from penstock.executor.gpu.helping import Help, may_help
from penstock.executor.iteration import Iteration
from penstock.executor.lane_side import LaneSide
from penstock.executor.plan import shares_lanes
from penstock.executor.programs import Programs
from penstock.executor.recovery import Recovery
from penstock.executor.sources.reading import BatchReader, decodes_next, reads_for_lane
from penstock.executor.stages import ENTER, Stages
from penstock.executor.statistics import Statistics
from penstock.executor.step import with_place
from penstock.executor.turns import is_early, stages_in_order

if TYPE_CHECKING:
    from penstock.executor.bad_samples import BadSample
    from penstock.executor.cpu.program import Program
    from penstock.executor.gpu.lane import Lane
    from penstock.executor.plan import Plan
    from penstock.executor.sources.reading import Reading
    from penstock.operators.support.schema import Spec
    from penstock.tensors.gpu.device import Device

_LOOKS_UP_SECONDS = 0.5
"""A Ctrl-C that comes just as a thread falls asleep does not wake it, so the consumer wakes now and
then by itself."""

_WAY_OUT = (
    'A pipeline made with `on_bad_sample="skip"`, or "replace", goes on without bad samples and '
    "lists them in `Pipeline.bad_samples`."
)
"""For errors that end an iteration because of one sample that cannot be read."""


class Executor(LaneSide):
    """In-flight iterations of one pipeline and the threads that work on them.

    Parameters
    ----------
    plan
        The graph, cut into stages.
    readers
        The opened reader of each reader node, by ``id(node)``.
    num_threads
        Number of worker threads.
    fuse
        Whether neighbouring operators may be merged.
    on_bad_sample
        ``"raise"``, ``"skip"`` or ``"replace"``.
    set_affinity
        Bind each thread to a processor of its own.
    device
        The GPU, for plans that have work for one.
    depth
        How many iterations are worked on ahead.
    """

    def __init__(
        self,
        plan: Plan,
        readers: dict[int, Any],
        *,
        num_threads: int,
        fuse: bool,
        on_bad_sample: str,
        set_affinity: bool = False,
        device: Device | None = None,
        depth: int = 2,
    ) -> None:
        self.plan = plan
        self.readers = readers
        self.statistics = Statistics()
        self._recovery = Recovery(plan, readers, on_bad_sample, self.statistics)
        self.fuse = fuse
        self._policy = on_bad_sample
        self._programs = Programs(plan, readers, fuse=fuse, threads=num_threads)
        self._stages = Stages(plan, self._programs, self._recovery, device)
        self.gate = Gate()
        self._lock = self.gate.lock
        self._work = self.gate.work
        self._finished = self.gate.finished
        self._queue: deque[Iteration] = deque()
        """Scheduled and not yet handed over, oldest first."""
        self._beginning = False
        self._process = forks()
        self._num_threads = num_threads
        self._set_affinity = set_affinity
        self._threads: list[threading.Thread] = []
        self._device = device
        self._depth = depth
        self._cancelling = False
        """Whether somebody waits for running samples, and not just for whole iterations."""
        self._runners: list[dict[Program, SampleRunner]] = [{} for _ in range(num_threads)]
        """What each thread runs samples with."""
        self._fed_to_cpu = [
            plan.registers[id(node), k]
            for node in plan.feeds
            if node.device == "cpu"
            for k in range(len(node.outputs))
        ]
        self._in_order = stages_in_order(plan)
        """Stages that iterations complete one after the other."""
        self._last_stage_that_redraws = max(
            (stage.number for stage in plan.stages if stage.lane == "mixed"), default=0
        )
        self._batch_reader: BatchReader | None = None
        """What reads whole batches, where a lane follows."""
        if reads_for_lane(plan):
            self._batch_reader = BatchReader(
                num_threads, processors=set_affinity, scans=decodes_next(plan)
            )
        self._lanes: dict[str, Lane] = {}
        self._shares_lanes = shares_lanes(plan)
        """Whether any thread does the work of lanes, which then hardly wakes another."""
        self.help = None
        if self._shares_lanes and self._batch_reader is None and may_help(plan):
            assert device is not None
            self.help = Help(self, device)
        self._first_lane = ""
        """The lane whose thread begins iterations, where workers have nothing to do before it."""

    @property
    def bad_samples(self) -> list[BadSample]:
        """Samples that were skipped or replaced so far."""
        return self._recovery.bad_samples

    def known_specs(self) -> dict[int, Spec]:
        """Types of the registers, as far as iterations have shown them."""
        return self._programs.known_specs()

    # -- the consumer's side ---------------------------------------------------------------

    def start(self) -> None:
        """Start the threads, once."""
        if not self._threads:
            self._threads = [
                *(Worker(self, k, bind=self._set_affinity) for k in range(self._num_threads)),
                *self._lane_threads(),
            ]
            try:
                for thread in self._threads:
                    thread.start()
            except BaseException:
                self.gate.close()
                raise

    def _lane_threads(self) -> list[threading.Thread]:
        names = sorted(self.plan.lanes)
        if not names:
            return []
        from penstock.executor.gpu.lane import Lane, LaneThread

        assert self._device is not None
        # What was handed over may still be worked on when the next iterations begin.
        ahead = 2 * self._depth + 1
        self._lanes = {name: Lane(self._device, name, ahead) for name in names}
        return [LaneThread(self, lane) for lane in self._lanes.values()]

    def check_process(self) -> None:
        """Check that this is the process with the threads.

        Raises
        ------
        UsageError
            If it is a fork of it.
        """
        if self._process != forks():
            raise UsageError(
                "The pipeline was built in another process, of which this one is a fork: its "
                "threads are there. Build a pipeline of its own in each process."
            )

    def schedule(self, iteration: Iteration) -> None:
        """Take in the next iteration."""
        with self._lock:
            self._queue.append(iteration)
            if self._first_lane:
                if self.help is None or not self.help.is_near:
                    self.gate.lanes[self._first_lane].notify()
            else:
                self._wake_worker()

    def pending(self) -> int:
        """How many iterations are scheduled and not yet handed over."""
        return len(self._queue)

    def take(self) -> Iteration:
        """Wait for the oldest iteration and hand it over.

        Raises
        ------
        Exception
            What went wrong in that iteration, which is dropped; the next one can be taken.
        """
        came = time.perf_counter()
        help = self.help
        try:
            if help is not None:
                help.came(came)
                help.give(self._queue[0])
            while True:
                with self._lock:
                    iteration = self._queue[0]
                    while not iteration.done:
                        self._check_open()
                        if help is not None and self.may_be_taken(iteration):
                            break
                        if not self._finished.wait(_LOOKS_UP_SECONDS):
                            self._wake_everybody()
                    else:
                        self._queue.popleft()
                        break
                assert help is not None
                help.give(iteration)
        except RuntimeError as failed:
            raise interruption(failed) from None
        went = time.perf_counter()
        self.statistics.waited(went - came)
        if help is not None:
            help.went(went)
        if iteration.error is not None:
            error, iteration.error = iteration.error, None
            if isinstance(error, BadSampleError) and self._policy == "raise" and self.plan.readers:
                error.add_note(_WAY_OUT)
            raise error
        return iteration

    def _wake_everybody(self) -> None:
        """Have all threads look for something to do. Holds the lock.

        A Ctrl-C may have come when an iteration was scheduled and nobody told of it yet.
        """
        for condition in (self.gate.work, *self.gate.lanes.values()):
            condition.notify_all()

    def _check_open(self) -> None:
        at_exit = self.gate.exiting and threading.current_thread() is not threading.main_thread()
        # A daemon thread that consumes while the program ends is to end with it, silently.
        if self.gate.closed and not at_exit:
            raise UsageError("The pipeline was shut down while its outputs were awaited.")

    def states(self) -> tuple[Iteration | None, dict[int, Any]]:
        """The oldest iteration in progress, and the readers' states from before it."""
        try:
            with self._lock:
                oldest = self._queue[0] if self._queue else None
                found = {} if oldest is None else oldest.states
                self._cancelling = True
                while self._beginning and len(found) < len(self.plan.readers):
                    self._check_open()
                    self._finished.wait(_LOOKS_UP_SECONDS)
                self._cancelling = False
                # Where an iteration has not begun, its readers have not drawn for any behind it.
                return oldest, {
                    key: found[key] if key in found else reader.state()
                    for key, reader in self.readers.items()
                }
        except RuntimeError as failed:
            raise interruption(failed) from None

    def cancel(self) -> dict[int, Any] | None:
        """Drop all scheduled iterations; return the readers' states from before them."""
        try:
            with self._lock:
                dropped = list(self._queue)
                for iteration in dropped:
                    iteration.next = iteration.size
                    iteration.queue.clear()
                    if iteration.error is None:
                        iteration.error = EndOfData("cancelled")
                    if iteration.reading is not None:
                        iteration.reading.stop()
                self._cancelling = True
                while self._beginning or any(i.in_flight for i in dropped):
                    self._finished.wait()
                self._cancelling = False
                self._queue.clear()
                return dropped[0].states if dropped and dropped[0].begun else None
        except RuntimeError as failed:
            raise interruption(failed) from None

    def shutdown(self, wait_seconds: float = 1.0) -> None:
        """Stop the threads; running samples are finished, the rest is dropped.

        Not more than `wait_seconds` are spent waiting for them: an operator may take long, or wait
        for a lock that is held further up in this very thread, where the garbage collector
        happened to run.
        """
        if self.gate.exiting:
            return  # the threads are told, and modules may be torn down already
        if self._process != forks():
            return  # the lock may have been held when the process was forked, and stay so
        self.gate.close()
        readers = [] if self._batch_reader is None else self._batch_reader.close()
        join([*self._threads, *readers], wait_seconds)
        self._threads = []

    def shut_down_at_exit(self) -> None:
        """Stop the threads, without waiting for them, because the program ends."""
        if self._process == forks():
            self.gate.exiting = True
            self.gate.close()
            if self._batch_reader is not None:
                self._batch_reader.close()
            self._threads = []

    # -- the workers' side -----------------------------------------------------------------

    def find_task(self) -> tuple[Iteration, list[int] | None] | None:
        """Samples of an iteration, or (with `None`) an iteration to begin. Holds the lock."""
        first_is_full = False
        for iteration in self._queue:
            if iteration.done or iteration.error is not None:
                continue
            if not iteration.begun:
                if first_is_full or self._first_lane or not self._may_begin():
                    return None
                self._beginning = True
                iteration.begun = True
                return iteration, None
            if iteration.entering:
                iteration.entering = False
                iteration.in_flight += 1
                return iteration, None
            program = iteration.program
            if program is None:
                continue
            if program.concurrency.is_full():
                first_is_full |= iteration.stage == 0
                continue
            samples = iteration.take(chunk_size(iteration, program, program.concurrency.limit))
            if samples:
                iteration.in_flight += 1
                program.concurrency.enter()
                self._wake_worker()
                return iteration, samples
        return None

    def _may_begin(self) -> bool:
        """Whether the oldest iteration that is not begun may be. Holds the lock.

        Readers draw in the order of iterations, one at a time. Where bad samples are made up for by
        later ones of the reader, those must not be drawn yet.
        """
        redraws = self._policy == "skip" and bool(self.plan.readers)
        return not (self._beginning or (redraws and self._has_reading_before()))

    def _wake_worker(self) -> None:
        """Wake a worker if there is something to do for one. Holds the lock.

        Waking a thread costs more than much of what there is to do, and even more where it finds
        nothing: it takes the interpreter from those that have work.
        """
        first_is_full = False
        for iteration in self._queue:
            if iteration.done or iteration.error is not None:
                continue
            if not iteration.begun:
                if not first_is_full and self._may_begin():
                    if not self._first_lane:
                        self._work.notify()
                    elif self._batch_reader is not None:  # it may have had to wait for others
                        self.gate.lanes[self._first_lane].notify()
                return
            program = iteration.program
            if program is not None and program.concurrency.is_full():
                first_is_full |= iteration.stage == 0
            elif iteration.entering or (
                program is not None and (iteration.next < iteration.size or iteration.queue)
            ):
                self._work.notify()
                return

    def _has_reading_before(self) -> bool:
        last = self._last_stage_that_redraws
        return any(i.begun and not i.done and i.stage <= last for i in self._queue)

    def proceed(self, iteration: Iteration) -> None:
        """Begin an iteration, or its next stage."""
        if iteration.stage < 0:
            self._begin(iteration)
            return
        program, failed = None, None
        try:
            for r in self.plan.stages[iteration.stage + 1].reads:
                wait = getattr(iteration.buffers[r], "wait", None)
                if wait is not None:
                    wait()
            program = self._stages.enter(iteration, iteration.stage + 1)
        except BaseException as error:  # whatever it is, somebody waits for this iteration
            failed = error
        with self._lock:
            iteration.in_flight -= 1
            iteration.program = program
            if failed is not None and iteration.error is None:
                iteration.error = failed
            self._advance(iteration)
            self._wake_worker()
            if self._cancelling:
                self._finished.notify_all()

    def _begin(self, iteration: Iteration) -> None:
        """Draw from the readers and make the first stage ready."""
        program: Program | None = None
        reading: Reading | None = None
        try:
            iteration.started = time.perf_counter()
            iteration.buffers = [None] * len(self.plan.consumers)
            for register in self._fed_to_cpu:
                iteration.buffers[register] = iteration.fed[register]
            for node in self.plan.readers:
                reader = self.readers[id(node)]
                iteration.states[id(node)] = with_place(node, reader.state)
                iteration.entries[id(node)] = with_place(node, reader.draw, iteration.size)
            program = self._stages.enter(iteration, 0)
            if self._batch_reader is not None and program.reads_only:
                reading = self._batch_reader.begin(iteration, program)
        except BaseException as error:  # whatever it is, somebody waits for this iteration
            program = reading = None
            iteration.error = error
        with self._lock:
            self._beginning = False
            if reading is not None:
                self._leave_to_readers(iteration, reading)
                program = None
            iteration.program = program
            if iteration.error is not None and not iteration.in_flight:
                self._finish(iteration)
            self._advance(iteration)
            if program is not None and not (self.plan.readers or program.has_work):
                if iteration.waiting and iteration.waiting != self._first_lane:
                    self.gate.lanes[iteration.waiting].notify()  # it begins those that follow
                self._first_lane = iteration.waiting
            self._wake_worker()
            if self._cancelling:
                self._finished.notify_all()

    def _leave_to_readers(self, iteration: Iteration, reading: Reading) -> None:
        """Let an iteration wait until its samples are read. Holds the lock."""
        iteration.reading = reading
        iteration.in_flight += 1
        iteration.next = iteration.size
        lane = self.plan.stages[1].lane
        if self._first_lane != lane:
            self._first_lane = lane
            self.gate.lanes[lane].notify()  # it begins those that follow
        if iteration.error is not None:
            reading.stop()

    def run_samples(self, iteration: Iteration, samples: list[int], worker: Worker) -> None:
        """Carry samples through their stage; go on with the iteration if they were the last."""
        program = iteration.program
        assert program is not None
        failures: list[tuple[int, BaseException]] = []
        failed: BaseException | None = None
        beside = program.concurrency.busy
        start, worked = time.perf_counter(), time.thread_time()
        try:
            runners = self._runners[worker.number]
            runner = runners.get(program)
            if runner is None:
                runner = SampleRunner(program, worker.arena, materialise_views=not self.fuse)
                runners[program] = runner
            runner.bind(iteration)
            try:
                failures = runner.run(samples)
            finally:
                runner.release()
        except BaseException as error:  # whatever it is, somebody waits for this iteration
            failed = error
        worked = (time.thread_time() - worked) / len(samples)
        seconds = (time.perf_counter() - start) / len(samples)
        program.note_time(seconds, worked)
        with self._lock:
            iteration.in_flight -= 1
            program.concurrency.leave(beside, seconds, program.processor_seconds)
            if failed is not None and iteration.error is None:
                iteration.error = failed
            iteration.failures.update(failures)
            if failures and self._policy == "raise":
                iteration.next = iteration.size  # the rest of the batch is of no use any more
            self._advance(iteration)
            if self._cancelling:
                self._finished.notify_all()

    def _advance(self, iteration: Iteration) -> None:
        """Go on to whatever comes next, if nothing is left to do in the stage. Holds the lock."""
        while (
            not iteration.done
            and iteration.program is not None
            and iteration.in_flight == 0
            and iteration.next >= iteration.size
            and not iteration.queue
            and iteration.error is None
        ):
            number = iteration.stage
            if number in self._in_order and is_early(self._queue, iteration, number):
                iteration.held = True
                break
            program = iteration.program
            iteration.program = None  # nobody else advances it meanwhile
            iteration.in_flight += 1
            self._lock.release()
            try:
                following = self._stages.complete(iteration, program)
            except BaseException as error:
                following = None
                failed: BaseException | None = error
            else:
                failed = None
            finally:
                self._lock.acquire()
                iteration.in_flight -= 1
            if failed is not None and iteration.error is None:
                iteration.error = failed
            self._settle(iteration, following)
        if iteration.error is not None and iteration.in_flight == 0:
            self._finish(iteration)
        if self._in_order:
            self._advance_held()

    def _advance_held(self) -> None:
        """Go on with an iteration that has waited for its turn. Holds the lock."""
        for iteration in self._queue:
            if iteration.held and not is_early(self._queue, iteration, iteration.stage):
                iteration.held = False
                self._advance(iteration)  # which comes back here for the next
                return

    def _settle(self, iteration: Iteration, following: Program | str | None) -> None:
        """Put down what comes next: samples, a lane, ... Holds the lock."""
        help = self.help
        iteration.program = None
        if iteration.error is not None or following is None:
            if iteration.in_flight == 0:
                self._finish(iteration)
            return
        if isinstance(following, str):
            lane, program = following, None
        else:
            lane, program = "", following
        # A Ctrl-C comes before all of the next statements, or behind them: nothing is called.
        if help is not None and help.claimed is iteration:
            help.claimed = None
        if lane is ENTER:
            iteration.entering = True
        else:
            iteration.waiting = lane
            iteration.program = program
        if iteration.waiting:
            self._wake_lane(iteration.waiting)
        else:
            self._wake_worker()

    def _finish(self, iteration: Iteration) -> None:
        """Mark an iteration as done. Holds the lock."""
        if not iteration.done:
            iteration.done = True
            iteration.seconds = time.perf_counter() - iteration.started
            self.statistics.finished(iteration)
            self._finished.notify_all()
            self._wake_worker()
            if self._in_order:  # a later one may have waited for this one
                for lane in self.gate.lanes.values():
                    lane.notify()
