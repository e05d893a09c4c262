"""External sources of a pipeline: their epoch, and their data for the next iteration."""

from __future__ import annotations

import math
import threading
import warnings
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from headrace.errors import (
    ArgumentTypeError,
    ShapeError,
    UnknownNameError,
    created_at,
    did_you_mean,
)
from headrace.executor.cpu.batch import BatchBuffer
from headrace.executor.cpu.shape_statistics import ShapeStatistics
from headrace.executor.gpu.batch import GpuBatch
from headrace.executor.memory import Pieces, Sizes
from headrace.graph.data_node import DataNode
from headrace.graph.nodes import OpNode
from headrace.graph.user_line import stack_level
from headrace.operators.readers.video_description import DESCRIBES
from headrace.operators.support.external.input_queue import DeviceOutputBatch
from headrace.profiling.recorder import CONSUMER, NO_RECORD, Label, SpanRecorder
from headrace.tensors.gpu.device import GpuDevice
from headrace.tensors.pool import HOST_POOL, HostPool

if TYPE_CHECKING:
    from headrace.executor.plan import Plan
    from headrace.operators.support.external.input_queue import AnyOutputBatch, InputQueue


class InputQueues:
    """Collects, in the consumer's thread, the data of external sources for the next iteration."""

    def __init__(
        self,
        plan: Plan,
        max_batch_size: int,
        device: GpuDevice | None = None,
        names: dict[int, str] | None = None,
        host: HostPool = HOST_POOL,
        recorder: SpanRecorder = NO_RECORD,
    ) -> None:
        self._recorder = recorder
        self._plan = plan
        self._max_batch_size = max_batch_size
        self._names = names
        self._before: dict[str, Any] | None = None
        """State from before the sources were last asked."""
        self.epoch = 0
        self.iteration = 0
        self.ended = False
        self.changes = 0
        """Number of arrivals that a consumer may be waiting for."""
        self._changing = threading.Lock()
        """Guards `changes`."""
        self._changed = threading.Condition(self._changing)
        """The consumer waits here for a source that is fed."""
        self._waiting = 0
        """Number of threads that wait there."""
        # What was fed is taken last: it must not be lost when a source raises.
        self._fed = [
            (node, [plan.registers[id(node), k] for k in range(len(node.outputs))])
            for node in sorted(plan.fed_nodes, key=lambda n: not n.input_queue.has_source)
        ]
        self._code = recorder.code("sources", self._labels)
        self._unseen = {
            plan.register(edge): node
            for node in plan.nodes
            for edge in node.inputs[:1]
            if edge.source in plan.fed_nodes and "HWC" in (node.schema.inputs[0].layouts or ())
        }
        """Operators that may take data for images, by registers that were not looked at yet."""
        for node in plan.fed_nodes:
            pools: list[HostPool] = [
                device.pinned if device is not None and is_for_gpu(plan, node, k) else host
                for k in range(len(node.outputs))
            ]
            number = None if device is None else device.runtime.device_id
            node.input_queue.place(number, device is not None and node.device == "gpu", pools)
            node.input_queue.describes = bool(node.args.get(DESCRIBES))

    def _labels(self) -> list[Label]:
        names = ", ".join(node.name for node, _ in self._fed)
        kind = "source" if any(node.input_queue.has_source for node, _ in self._fed) else "engine"
        where = self._fed[0][0].user_line if self._fed else ""
        return [Label(f"external source {names}".strip(), kind, where=where)]

    def queue(self, name: str) -> InputQueue:
        """The external source named `name`."""
        for node in self._plan.fed_nodes:
            if node.name == name:
                return node.input_queue  # type: ignore[no-any-return]
        raise unknown_source(name, [node.name for node in self._plan.fed_nodes])

    def batches_of_epoch(self, following: int) -> int | None:
        """Return the number of batches of this epoch, or the `following` one: until the first
        source ends.

        `None` where a source does not know, or none has an end.
        """
        queues = [node.input_queue for node in self._plan.fed_nodes]
        is_first = self.epoch + following == 0
        counts = [queue.batches(self._max_batch_size, is_first=is_first) for queue in queues]
        known = [count for count in counts if count is not None]
        if len(known) < len(counts) or min(known, default=math.inf) == math.inf:
            return None
        return int(min(known))

    def feed_all(self, inputs: dict[str, Any]) -> None:
        """Give a batch to each of the named sources, or, where any is wrong, to none."""
        if not inputs:
            return
        prepared = [
            (queue := self.queue(name), queue.prepare(data)) for name, data in inputs.items()
        ]
        for queue, batch in prepared:
            queue.append(batch)
        self.note_change()

    def warn_of_empty_epoch(self) -> None:
        """Warn where an epoch ends before its first batch, as iterables were at their end."""
        if self.epoch == 0 or self.iteration > 0:
            return
        for node in self._plan.fed_nodes:
            if node.input_queue.ends_for_good:
                warnings.warn(
                    f"This epoch is empty: the iterable of {_place(node)}, has come to its end and "
                    'is not begun anew. `cycle="raise"` begins it anew in every epoch; instead of '
                    "a generator, pass the generator function.",
                    UserWarning,
                    stacklevel=stack_level(),
                )

    def waiting(self, pieces: Pieces) -> Sizes:
        """Return the memory of fed data not used yet, as far as it is new to `pieces`."""
        arrays = [a for node in self._plan.fed_nodes for a in node.input_queue.waiting()]
        return Sizes(pieces.add_arrays(arrays))

    def starving(self) -> list[str]:
        """Names of the sources that would have to be fed before the next iteration."""
        return [n.name for n in self._plan.fed_nodes if not n.input_queue.ready()]

    def may_wait(self) -> bool:
        """Return True if all sources without data can be waited for."""
        return all(
            n.input_queue.blocking for n in self._plan.fed_nodes if not n.input_queue.ready()
        )

    def note_change(self) -> None:
        """Tell a waiting consumer that a source was fed, or that an iteration was scheduled."""
        with self._changing:
            self.changes += 1
            if self._waiting:
                self._changed.notify_all()

    def wait_for_change(self, seen: int) -> None:
        """Wait until `changes` is no longer `seen`."""
        with self._changing:
            self._waiting += 1
            try:
                while self.changes == seen:
                    self._changed.wait()
            finally:
                self._waiting -= 1

    def state(self) -> dict[str, Any]:
        """Return the positions of the sources: the epoch, the iteration in it, and each source by
        name.
        """
        return {
            "epoch": self.epoch,
            "iteration": self.iteration,
            "ended": self.ended,
            "sources": {
                self._names[node.serial]: node.input_queue.state()
                for node in self._plan.fed_nodes
                if self._names is not None
            },
        }

    def restore(self, state: Mapping[str, Any]) -> None:
        """Restore the positions from `state`; sources whose own state is `None` stay as they
        are.
        """
        assert self._names is not None
        self.epoch, self.iteration = state["epoch"], state["iteration"]
        self.ended = state["ended"]
        sources = state["sources"]
        for node in self._plan.fed_nodes:
            own = sources[self._names[node.serial]]
            if own is None:
                continue
            try:
                node.input_queue.restore(own)
            except Exception as error:
                error.add_note(
                    f'raised while the external source "{node.name}", created at '
                    f"{node.user_line}, was brought to where a checkpoint was made"
                )
                raise

    def collect(self) -> tuple[int, dict[int, BatchBuffer | GpuBatch]]:
        """Size and fed batches (by register) of the next iteration."""
        if not self._recorder.is_on:
            return self._collected()
        code = self._code if self._fed else -1
        with self._recorder.span(code, self.iteration, lane=CONSUMER) as span:
            size, fed = self._collected()
            span.samples = size
        return size, fed

    def _collected(self) -> tuple[int, dict[int, BatchBuffer | GpuBatch]]:
        self._before = None if self._names is None else self.state()
        deliveries: list[tuple[OpNode, list[int], list[AnyOutputBatch]]] = []
        stop = False
        for node, registers in self._fed:
            if stop and not node.input_queue.has_source:
                break
            try:
                batches = node.input_queue.collect(self._max_batch_size, self.iteration, self.epoch)
            except StopIteration:
                stop = True
            except Exception as error:
                self._add_place(error, node)
                raise
            else:
                deliveries.append((node, registers, batches))
        if stop:
            self.ended = True
            raise StopIteration
        self.iteration += 1
        size = self._common_size(deliveries)
        if self._unseen:
            self._warn_of_planes(deliveries)
        fed = {
            r: buffer_of(delivery)
            for _, registers, batches in deliveries
            for r, delivery in zip(registers, batches, strict=True)
        }
        return size, fed

    def _warn_of_planes(
        self, deliveries: list[tuple[OpNode, list[int], list[AnyOutputBatch]]]
    ) -> None:
        """Warn where channels come first in data without a layout that is taken for HWC."""
        unseen, self._unseen = self._unseen, {}
        for _, registers, batches in deliveries:
            for register, batch in zip(registers, batches, strict=True):
                if (
                    register not in unseen
                    or batch.spec.layout
                    or isinstance(batch, DeviceOutputBatch)
                ):
                    continue
                samples = batch.dense if batch.samples is None else batch.samples
                shape = () if samples is None else samples[0].shape
                if len(shape) == 3 and shape[0] in (1, 3) and min(shape[1:]) > 4:
                    self._plan.warn(
                        unseen[register],
                        f"data of shape {shape} has no layout and is taken for HWC, which makes it "
                        f"{shape[0]} pixels high, with {shape[2]} channels. If it is CHW, give its "
                        'external source `layout="CHW"`; if not, `layout="HWC"`.',
                    )

    def _add_place(self, error: Exception, node: OpNode) -> None:
        """Note on `error` which source raised it, unless its worker has noted that.

        A source may raise the same object again in a later iteration, which replaces the note.
        """
        source = f'the external source "{node.name}", created at {node.user_line}'
        whole = f'the external source "{node.name}", {created_at(node.user_stack)}'
        own = f"raised for iteration {self.iteration} of {whole}"
        notes = list(getattr(error, "__notes__", ()))
        of_worker = [n.replace(source, whole) for n in notes if n.endswith(source)]
        others = [n for n in notes if source not in n]
        error.__notes__ = [*others, *(of_worker or [own])]

    def _common_size(self, deliveries: list[tuple[OpNode, list[int], list[AnyOutputBatch]]]) -> int:
        size = 0
        origin: OpNode | None = None
        for node, _, batches in deliveries:
            for delivery in batches:
                count = len(delivery)
                if count > self._max_batch_size:
                    raise ShapeError(
                        f"Expected batch_size <= {self._max_batch_size}, actual: {count}, from the "
                        f"external source {_place(node)}. Give the pipeline a larger `batch_size`; "
                        "or, if the source returns one sample at a time, give it `batch=False`."
                    )
                if origin is node and count != size:
                    raise ShapeError(
                        "External source must return outputs with consistent batch size. "
                        f"{_place(node)}, returned batches of {size} and {count} samples."
                    )
                if origin is not None and count != size:
                    raise ShapeError(
                        f"Batch size clash! The external source {_place(node)}, returned a batch "
                        f"of {count} samples, {_place(origin)}, one of {size}. All inputs of an "
                        "iteration must have as many samples."
                    )
                size, origin = count, node
        return size or self._max_batch_size

    @property
    def before(self) -> dict[str, Any] | None:
        """State from before the sources were last asked, where checkpoints can be made."""
        return self._before

    def reset(self) -> None:
        """Begin the next epoch, if the end of one was reached."""
        if self.ended:
            self.new_epoch()

    def new_epoch(self) -> None:
        """Begin the next epoch."""
        self.ended = False
        self.epoch += 1
        self.iteration = 0
        for node in self._plan.fed_nodes:
            node.input_queue.new_epoch()


def unknown_source(name: str, names: list[str]) -> UnknownNameError:
    """The error for `name`, where sources of a pipeline have other `names`."""
    known = ", ".join(f'"{other}"' for other in names) or "none"
    return UnknownNameError(
        f'Could not find an input operator with name "{name}".{did_you_mean(name, names)} External '
        f"sources of this pipeline: {known}. One whose output is not used is left out."
    )


def source_name(source: DataNode | str) -> str:
    """The name of an external source, which may be given as its edge."""
    if isinstance(source, str):
        return source
    if not isinstance(source, DataNode):
        raise ArgumentTypeError(
            f"Expected the name of an external source or its `DataNode`, got {source!r}."
        )
    return source.name if source.source is None else source.source.name


def _place(node: OpNode) -> str:
    return f'"{node.name}", created at {node.user_line}'


def is_for_gpu(plan: Plan, node: OpNode, output: int) -> bool:
    """Return True if host batches of a source go to the GPU."""
    register = plan.registers[id(node), output]
    return node.device == "gpu" or (plan.uploaded[register] and register not in plan.outputs)


def buffer_of(delivery: AnyOutputBatch) -> BatchBuffer | GpuBatch:
    """Return a fed batch in the engine's form."""
    if isinstance(delivery, DeviceOutputBatch):
        batch = delivery.batch
        access = batch._access
        return GpuBatch(batch._batch, delivery.spec, None, access.event, access.stream)
    if delivery.dense is not None:
        return BatchBuffer.of_values(delivery.dense, delivery.spec, ShapeStatistics())
    samples = delivery.samples
    assert samples is not None
    buffer = BatchBuffer(len(samples), delivery.spec, ShapeStatistics())
    buffer.rows = list(samples)
    return buffer
