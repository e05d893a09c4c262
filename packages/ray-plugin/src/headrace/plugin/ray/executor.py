"""The executor of a pipeline whose samples are carried by workers on a Ray cluster.

Readers draw and external sources are asked here, in the order of iterations, so whatever depends on
that order (checkpoints, epochs, shards) is the pipeline's own. An iteration is a task for any
worker: random numbers are functions of its number. What comes back is handed over in order, or
goes through the rest of the graph first, which an ordinary executor runs here.
"""

from __future__ import annotations

import math
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
import ray

from headrace.errors import HeadraceError, UsageError
from headrace.executor.checkpoint import TAKEN
from headrace.executor.executor import Executor
from headrace.executor.iteration import DONE, Iteration
from headrace.executor.memory import PipelineMemory
from headrace.executor.monitor import interruption
from headrace.executor.schedule import Consumer
from headrace.executor.statistics import Statistics
from headrace.executor.step import with_place
from headrace.executor.threads import forks
from headrace.plugin.ray.fleet import Fleet, Member
from headrace.plugin.ray.messages import PackedBatch, Result, Task
from headrace.plugin.ray.options import Options
from headrace.plugin.ray.parts import find_parts
from headrace.plugin.ray.report import Report
from headrace.plugin.ray.scaling import LOOK_EVERY, wanted_workers
from headrace.plugin.ray.split import Split
from headrace.plugin.ray.store_memory import StoreMemory

if TYPE_CHECKING:
    from headrace.executor.affinity import Affinity
    from headrace.executor.bad_samples import BadSample
    from headrace.executor.cpu.batch import BatchBuffer
    from headrace.executor.plan import Plan
    from headrace.graph.data_node import DataNode
    from headrace.operators.support.schema import Spec
    from headrace.plugin.ray.recorder import ClusterRecorder
    from headrace.tensors.gpu.device import GpuDevice

_POLL_SECONDS = 0.5
"""Interval at which a waiting consumer looks for a Ctrl-C, and for workers that never start."""
_SHARE_OF_STORE = 0.4
_MOST_BYTES = 2 << 30
"""Bytes in flight where the user does not say: this share of the store of the trainer's node, and
not more than that."""


class RayExecutor:
    """In-flight iterations of one pipeline, and the workers that work on them."""

    processes = None

    def __init__(
        self,
        options: Options,
        plan: Plan,
        readers: dict[int, Any],
        outputs: Sequence[DataNode],
        *,
        functions_travel: bool,
        steps_left: Callable[[], int | None] | None,
        taken: Iterable[int] = (),
        recorder: ClusterRecorder | None = None,
        num_threads: int,
        fuse: bool,
        on_bad_sample: str,
        affinity: Affinity | None = None,
        device: GpuDevice | None = None,
        depth: int = 2,
        most_ahead: int | None = None,
        processes: None = None,
        memory: PipelineMemory | None = None,
    ) -> None:
        self.plan = plan
        self.readers = readers
        self.memory = PipelineMemory(device) if memory is None else memory
        self.statistics = Statistics()
        self.consumer = Consumer()
        self.changed = threading.Condition(threading.RLock())
        """Guards everything here and in the fleet."""
        self.fleet: Fleet | None = None
        self.report: Report | None = None
        self._options = options
        self._bounds = options.least, options.most
        self._outputs = list(outputs)
        self._functions_travel = functions_travel
        self._steps_left = steps_left
        self._how: dict[str, Any] = {
            "num_threads": num_threads,
            "fuse": fuse,
            "on_bad_sample": on_bad_sample,
            "affinity": affinity,
            "device": device,
            "depth": depth,
        }
        self._process = forks()
        self._recorder = recorder
        self._bad_samples: list[BadSample] = []
        self._split: Split | None = None
        self._rest: Executor | None = None
        """Runs the rest of the graph here, if there is any."""
        self._queue: deque[Iteration] = deque()
        """Scheduled and not handed over, oldest first."""
        self._tickets: dict[int, Iteration] = {}
        """Iterations that no result has come for."""
        self._of_iteration: dict[int, int] = {}
        """Tickets by ``id`` of the iteration, for all in the queue."""
        self._arrived: dict[int, Result] = {}
        """Results by ticket that are not on their way to the consumer."""
        self._forwarded: deque[tuple[Iteration, Result]] = deque()
        """Iterations on their way to the consumer, in the order in which it gets them."""
        self._next_ticket = 0
        self._free_steps: float = 0
        """Iterations, oldest first, that may be handed over in any order."""
        self._refills: dict[int, tuple[Member, int]] = {}
        """Requests for entries in place of bad ones, by ticket: of whom, and how many."""
        self._after_draw: dict[int, dict[int, Any]] = {}
        """By ticket of an iteration that has got such, the readers' states from before those."""
        self._taken = frozenset(taken)
        """Places of iterations that an iterator had got before a checkpoint, out of turn."""
        self._places = 0
        """Number of iterations since that checkpoint, or the beginning."""
        self._place_of: dict[int, int] = {}
        """Places by ``id`` of the iteration, for all in the queue."""
        self._ahead: set[int] = set()
        """Places of iterations that were handed over out of turn."""
        self._bytes_each = 0.0
        """Bytes of the results of an iteration, as far as known."""
        self._limit = options.bytes_in_flight or 0
        self._store = StoreMemory(0)
        self._closed = False

    # -- what the pipeline asks for ------------------------------------------------------------

    @property
    def bad_samples(self) -> list[BadSample]:
        """Samples that were skipped or replaced so far, by workers and here."""
        rest = [] if self._rest is None else self._rest.bad_samples
        return [*self._bad_samples, *rest]

    @property
    def carriers(self) -> dict[str, Any]:
        """Entries of `Pipeline.counters`."""
        with self.changed:
            return {"workers": "ray", **({} if self.report is None else self.report.counters(self))}

    def known_specs(self) -> dict[int, Spec]:
        """Types of the registers: none is known here."""
        return {}

    def scheduled(self) -> list[Iteration]:
        """Iterations that are scheduled and not yet handed over, oldest first."""
        with self.changed:
            return list(self._queue)

    def pending(self) -> int:
        """Number of iterations that are scheduled and not yet handed over."""
        return len(self._queue)

    def start(self) -> None:
        """Nothing: workers start with the first iteration, whose data says where to cut."""

    def check_process(self) -> None:
        """Check that this is the process that started the workers."""
        if self._process != forks():
            raise UsageError(
                "The pipeline was built in another process, of which this one is a fork: its "
                "workers answer there. Build a pipeline of its own in each process."
            )

    def schedule(self, iteration: Iteration) -> bool:
        """Take in the next iteration: its readers draw, and it is a task for a worker. False if the
        consumer has had it before a checkpoint.
        """
        self._draw(iteration)
        place, self._places = self._places, self._places + 1
        if place in self._taken:
            with self.changed:
                self._ahead.add(place)
            return False
        if self._split is None:
            self._begin(iteration)
        with self.changed:
            self._queue.append(iteration)
            self._place_of[id(iteration)] = place
            iteration.started = time.perf_counter()
            self._make_task(iteration)
            self.go_on()
        return True

    def _draw(self, iteration: Iteration) -> None:
        for node in self.plan.readers:
            reader = self.readers[id(node)]
            iteration.states[id(node)] = with_place(node, reader.state)
            drawn = with_place(node, reader.draw, iteration.size)
            iteration.entries[id(node)] = np.array(drawn, np.int64)

    def _make_task(self, iteration: Iteration) -> None:
        """Make a task of an iteration; of one of which there is a task, with what it drew anew."""
        fleet, ticket = self.fleet, self._next_ticket
        assert fleet is not None
        self._next_ticket += 1
        before = self._of_iteration.get(id(iteration))
        if before is not None:
            fleet.drop(before)
            self._tickets.pop(before, None)
            self._arrived.pop(before, None)
            self._release(before)
        self._tickets[ticket] = iteration
        self._of_iteration[id(iteration)] = ticket
        fleet.waiting[ticket] = self._task(ticket, iteration)

    def finish(self) -> None:
        """Wait until all that is scheduled is done."""
        with self.changed:
            while self._tickets:
                self._check()
                self.changed.wait(_POLL_SECONDS)

    def take(self) -> Iteration:
        """Wait for an iteration and hand it over: the oldest, or, unordered, what is there."""
        began = time.perf_counter()
        self.consumer.is_inside = True
        try:
            with self.changed:
                if self._steps_left is not None and not self._options.ordered:
                    steps = self._steps_left()
                    self._free_steps = math.inf if steps is None else max(steps - 1, 0)
                    self._forward()
                while not self._forwarded:
                    self._check()
                    if not self.changed.wait(_POLL_SECONDS):
                        self.go_on()
                iteration, result = self._forwarded.popleft()
                self._queue.remove(iteration)
                self._after_draw.pop(self._of_iteration.pop(id(iteration)), None)
                self._ahead.add(self._place_of.pop(id(iteration)))
                if self._queue:
                    oldest = self._place_of[id(self._queue[0])]
                    self._ahead = {place for place in self._ahead if place > oldest}
                self._free_steps = max(self._free_steps - 1, 0)
        except HeadraceError:
            raise
        except RuntimeError as failed:
            raise interruption(failed) from None
        finally:
            self.consumer.is_inside = False
        self._complete(iteration, result)
        with self.changed:
            self.go_on()
        ended = time.perf_counter()
        self.statistics.waited(ended - began)
        assert self.report is not None
        self.report.took(began, ended)
        if self._recorder is not None:
            self._recorder.took(iteration, began, ended)
        if self.report.batches % LOOK_EVERY == 0 and self._bounds[0] < self._bounds[1]:
            self._follow_rates()
        return iteration

    def _follow_rates(self) -> None:
        """Have as many workers as the trainer's pace wants."""
        with self.changed:
            fleet, report = self.fleet, self.report
            assert fleet is not None
            assert report is not None
            if fleet.are_all_there():
                wanted = wanted_workers(
                    *(report.period_seconds, fleet.seconds_a_batch(), fleet.wanted, *self._bounds)
                )
                if wanted != fleet.wanted:
                    fleet.resize(wanted)

    def states(self) -> tuple[Iteration | None, dict[int, Any]]:
        """The oldest iteration in progress, and the readers' states from before it."""
        with self.changed:
            oldest = self._queue[0] if self._queue else None
            if oldest is not None and oldest.sources is not None:
                first = self._place_of[id(oldest)]
                ahead = sorted(place - first for place in self._ahead if place > first)
                sources = {k: v for k, v in oldest.sources.items() if k != TAKEN}
                oldest.sources = {**sources, TAKEN: ahead} if ahead else sources
            found = {} if oldest is None else oldest.states
            return oldest, {
                key: found[key] if key in found else reader.state()
                for key, reader in self.readers.items()
            }

    def cancel(self) -> dict[int, Any] | None:
        """Drop all scheduled iterations; return the readers' states from before them."""
        with self.changed:
            dropped = list(self._queue)
            self._queue.clear()
            self._tickets.clear()
            self._of_iteration.clear()
            self._arrived.clear()
            self._forwarded.clear()
            self._place_of.clear()
            self._ahead.clear()
            self._after_draw.clear()
            self._taken = frozenset()
            for ticket in list(self._refills):
                self._release(ticket)
            self._free_steps = 0
            if self.fleet is not None:
                self.fleet.waiting.clear()
                for member in self.fleet.members.values():
                    member.assigned.clear()
            if self._rest is not None:
                self._rest.cancel()
            return dropped[0].states if dropped else None

    def shutdown(self, wait_seconds: float = 1.0) -> None:
        """End the workers, and the threads here."""
        if self._process != forks():
            return
        with self.changed:
            self._closed = True
            self.changed.notify_all()
            if self.fleet is not None:
                self.fleet.close()
            self._arrived.clear()
        if self._rest is not None:
            self._rest.shutdown(wait_seconds)
        if self._recorder is not None:
            self._recorder.end()

    def shut_down_at_exit(self) -> None:
        """End the workers without waiting, because the program ends."""
        if self._process != forks():
            return
        self._closed = True
        if self.fleet is not None:
            self.fleet.close()
        if self._rest is not None:
            self._rest.shut_down_at_exit()
        if self._recorder is not None:
            self._recorder.end()

    def resize(self, least: int, most: int) -> None:
        """Have another number of workers, from now on."""
        with self.changed:
            self._bounds = least, most
            if self.fleet is not None:
                self.fleet.resize(min(max(self.fleet.wanted, least), most))
                self.go_on()

    # -- the beginning -------------------------------------------------------------------------

    def _begin(self, iteration: Iteration) -> None:
        """Find the cut, and start the workers."""
        parts = find_parts(
            *(self.plan, self.readers, self._outputs, iteration, self._options.cut, self._how),
            functions_travel=self._functions_travel,
        )
        self._split, self.report = parts.split, Report(parts.cut)
        self._bytes_each = parts.cut.bytes_per_batch
        if parts.rest is not None:
            self._rest = Executor(parts.rest, {}, memory=self.memory, **self._how)
            self._rest.start()
        with self.changed:
            if self._options.bytes_in_flight is None:
                self._limit = _bytes_in_flight()
            self._store = StoreMemory(self._limit // 2)
            packed, references = parts.packed
            self.fleet = Fleet(self._options, [ray.put(packed), references], self)
            self.fleet.resize(self._options.least)

    # -- tasks and results ---------------------------------------------------------------------

    def _task(self, ticket: int, iteration: Iteration) -> Task:
        assert self._split is not None
        nodes = self._split.remote
        fed = [
            PackedBatch.of(iteration.fed[self.plan.registers[id(n), k]])  # type: ignore[arg-type]
            for n in nodes
            if n.input_queue is not None
            for k in range(len(n.outputs))
        ]
        entries = [iteration.entries[id(n)].tolist() for n in nodes if n.schema.reader]
        return Task(ticket, iteration.number, iteration.size, entries, fed)

    def go_on(self) -> None:
        """Have workers begin what they can: as much as may be in flight, the oldest first."""
        fleet = self.fleet
        if fleet is None or fleet.is_closed:
            return
        there = len(self._arrived) + len(self._forwarded) + fleet.in_hand()
        most = math.inf if not self._bytes_each else self._limit // self._bytes_each
        room = max(most - there, 0)
        tickets = sorted(fleet.waiting)
        if not there:
            room = max(room, 1)  # one is always on its way, however large it is
        elif tickets and room < 1 and self._queue:
            # So is the one that the consumer gets next, which may have been lost.
            first = self._of_iteration[id(self._queue[0])]
            room = int(tickets[0] == first)
        fleet.deal(tickets if room == math.inf else tickets[: int(room)])
        if self._give_way():
            self.go_on()

    def _give_way(self) -> bool:
        """Begin iterations anew that wait for entries and so keep the oldest from beginning.

        They get entries once those before are done. After a worker is lost, one of those may stand
        behind one that waits, on the same worker, or have no worker because all wait.
        """
        fleet, oldest = self.fleet, min(self._tickets, default=-1)
        assert fleet is not None
        in_the_way = fleet.before(oldest)
        if in_the_way is None and not fleet.with_room():
            in_the_way = list(self._refills)
        waiting = self._refills.keys() & (in_the_way or [])
        if not waiting:
            return False
        first = self._queue.index(self._tickets[min(waiting)])
        for iteration in list(self._queue)[first:]:
            self._make_task(iteration)
        return True

    def arrived(self, member: Member, result: Result) -> None:
        """Take in a result of a worker."""
        assert self.fleet is not None
        if result.wanted:
            self._refills[result.ticket] = member, result.wanted
            if result.ticket in self._tickets:
                self._refill()
            else:
                self._release(result.ticket)
            return
        task = member.assigned.get(result.ticket)
        if not self.fleet.took(member, result) or result.ticket not in self._tickets:
            return
        if self._recorder is not None and task is not None:
            self._recorder.arrived(member, task, result)
        self._bad_samples += result.bad_samples
        del self._tickets[result.ticket]
        self._arrived[result.ticket] = result
        if result.nbytes:
            known = self._bytes_each or result.nbytes
            self._bytes_each = max(result.nbytes, 0.9 * known + 0.1 * result.nbytes)
        self._forward()
        self._refill()

    def _refill(self) -> None:
        """Draw entries in place of bad ones, for the oldest iteration that is not done.

        Those before it draw no more, and those after it draw once more.
        """
        ticket = min(self._tickets, default=-1)
        if ticket not in self._refills:
            return
        member, count = self._refills.pop(ticket)
        iteration = self._tickets[ticket]
        later = self._go_back_to(iteration)
        if ticket not in self._after_draw:
            states = {key: reader.state() for key, reader in self.readers.items()}
            self._after_draw[ticket] = states
        entries = [r.draw(count, refill=True) for r in self._readers_of_workers()]
        member.actor.refill.remote(entries)
        self._draw_again(later)

    def given_back(self, ticket: int) -> None:
        """Note that an iteration is begun anew; what was drawn in place of bad samples is, too."""
        self._refills.pop(ticket, None)
        states = self._after_draw.pop(ticket, None)
        if states is None:
            return
        later = self._go_back_to(self._tickets[ticket])
        for key, reader in self.readers.items():
            reader.restore(states[key])
        self._draw_again(later)

    def _go_back_to(self, iteration: Iteration) -> list[Iteration]:
        """Bring the readers to where they were after an iteration; return those that follow it."""
        later = list(self._queue)[self._queue.index(iteration) + 1 :]
        if later:
            for key, reader in self.readers.items():
                reader.restore(later[0].states[key])
        return later

    def _draw_again(self, later: list[Iteration]) -> None:
        for iteration in later:
            self._draw(iteration)
            self._make_task(iteration)

    def _release(self, ticket: int) -> None:
        """Let a worker go on that waits for entries which it will not get."""
        found = self._refills.pop(ticket, None)
        if found is not None and self.fleet is not None and not self.fleet.is_closed:
            found[0].actor.refill.remote(None)

    def _readers_of_workers(self) -> list[Any]:
        assert self._split is not None
        return [self.readers[id(node)] for node in self._split.remote if node.schema.reader]

    def _forward(self) -> None:
        """Send what is next on its way to the consumer."""
        before = True
        """True if all iterations before are on their way."""
        forwarded = {id(i) for i, _ in self._forwarded}
        for position, iteration in enumerate(self._queue):
            if id(iteration) in forwarded:
                continue
            result = self._arrived.get(self._of_iteration[id(iteration)])
            if result is not None and (before or position < self._free_steps):
                self._send(iteration, self._arrived.pop(result.ticket))
                continue
            before = False
            if self._options.ordered or position >= self._free_steps:
                break

    def _send(self, iteration: Iteration, result: Result) -> None:
        if result.error is None and self._rest is not None:
            mine = Iteration(iteration.number, iteration.size, self._fed(iteration, result))
            mine.replacements = dict(result.replacements or {})
            self._rest.schedule(mine)
        self._forwarded.append((iteration, result))

    def _fed(self, iteration: Iteration, result: Result) -> dict[int, Any]:
        """Batches that the rest of the graph reads, by register."""
        found, rest = self._split, self._rest
        assert found is not None
        assert rest is not None
        registers = rest.plan.registers
        given: dict[int, Any] = {}
        places = [registers[found.fed[id(e.source), e.index]] for e in found.crossing]
        # What is an output as it is, is the user's to change.
        handed_out = set(rest.plan.outputs)
        given.update(self._buffers(places, result, lambda place: place in handed_out))
        for key, place in found.fed.items():
            batch = iteration.fed.get(self.plan.registers[key])
            if batch is not None:
                given[registers[place]] = batch
        return given

    def _buffers(
        self, keys: list[Any], result: Result, is_handed_out: Callable[[Any], bool]
    ) -> dict[Any, BatchBuffer]:
        """Batches of a result by key; those that are handed out may be written to."""
        batches = result.batches
        mine = [k for k, key in enumerate(keys) if is_handed_out(key)]
        own = self._store.own([batches[k].values for k in mine])
        values = dict(zip(mine, own, strict=True))
        return {key: batches[k].buffer(values.get(k)) for k, key in enumerate(keys)}

    def _complete(self, iteration: Iteration, result: Result) -> None:
        """Give an iteration its outputs, or raise its error."""
        iteration.state = DONE
        iteration.seconds = time.perf_counter() - iteration.started
        iteration.skipped, iteration.draw_numbers = result.skipped, result.draw_numbers
        if result.error is not None:
            self.statistics.failed_iterations += 1
            raise result.error.unpacked()
        buffers: list[Any] = [None] * len(self.plan.consumers)
        found = self._split
        assert found is not None
        if self._rest is None:
            keys = [(id(edge.source), edge.index) for edge in found.crossing]
            batches = self._buffers(keys, result, lambda _: True)
            for edge, register in zip(self._outputs, self.plan.outputs, strict=True):
                key = id(edge.source), edge.index
                buffers[register] = batches[key] if key in batches else iteration.fed[register]
                if result.replacements and key not in batches:
                    buffers[register] = iteration.fed[register].replaced(result.replacements)
        else:
            try:
                done = self._rest.take()
            except Exception:
                self.statistics.failed_iterations += 1
                raise
            for register, own in zip(self.plan.outputs, self._rest.plan.outputs, strict=True):
                buffers[register] = done.buffers[own]
        iteration.buffers = buffers
        self.statistics.finished(iteration)

    def _check(self) -> None:
        if self._closed:
            raise UsageError("The pipeline was shut down while its outputs were awaited.")
        assert self.fleet is not None
        self.fleet.check()


def _bytes_in_flight() -> int:
    here = ray.get_runtime_context().get_node_id()
    for node in ray.nodes():
        if node["NodeID"] == here:
            store = float(node["Resources"].get("object_store_memory", 0.0))
            return int(min(_MOST_BYTES, _SHARE_OF_STORE * store)) or _MOST_BYTES
    return _MOST_BYTES
