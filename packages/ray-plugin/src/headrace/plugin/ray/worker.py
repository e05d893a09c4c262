"""A worker: an actor that carries out iterations, on any node, and streams their batches."""

from __future__ import annotations

import contextlib
import io
import os
import pickle
import queue
import socket
import sys
import threading
import time
from collections.abc import Iterator
from typing import Any

import ray

from headrace.errors import ArgumentTypeError
from headrace.executor.executor import Executor
from headrace.executor.iteration import Iteration
from headrace.executor.packed_error import PackedError
from headrace.executor.plan import make_plan
from headrace.executor.processes.graph import graph_pickler
from headrace.plugin.ray.given_order import GivenOrder
from headrace.plugin.ray.messages import Graph, PackedBatch, Result, Task, WorkerAddress


def packed_graph(graph: Graph) -> tuple[bytes, list[Any]]:
    """A graph as bytes, functions of the user's included; and what it has in Ray's store."""
    references: list[Any] = []

    class Packer(graph_pickler(with_functions=True)):  # type: ignore[misc]
        def persistent_id(self, value: Any) -> int | None:
            """Number of a reference, which Ray itself has to pass on: it counts them."""
            if not isinstance(value, ray.ObjectRef):
                return None
            references.append(value)
            return len(references) - 1

    stream = io.BytesIO()
    try:
        Packer(stream, protocol=5).dump(tuple(graph))
    except Exception as error:
        names = ", ".join(sorted({node.schema.name for node in graph.nodes}))
        raise ArgumentTypeError(
            f"The part of the pipeline that is to run in workers ({names}) cannot be pickled: "
            f"{type(error).__name__}: {error}. Name with `cut` an operator before what cannot "
            "travel; or feed the data by an external source, which is asked where the trainer is."
        ) from error
    return stream.getvalue(), references


class _Unpacker(pickle.Unpickler):
    """Reads what `packed_graph` wrote."""

    def __init__(self, packed: bytes, references: list[Any]) -> None:
        super().__init__(io.BytesIO(packed))
        self._references = references

    def persistent_load(self, number: Any) -> Any:
        """The reference with a number."""
        return self._references[number]


class Worker:
    """Runs the workers' part of one graph. Tasks and entries come in, batches go out."""

    def __init__(self, packed: bytes, references: list[Any], threads: int) -> None:
        graph = Graph(*_Unpacker(packed, references).load())
        os.environ.update(graph.variables)
        with contextlib.suppress(OSError):  # on another host it may not be there
            os.chdir(graph.folder)
            sys.path.insert(0, graph.folder)
        seeds = {id(n): s for n, s in zip(graph.nodes, graph.seeds, strict=True) if s is not None}
        of_readers = [node for node in graph.nodes if node.schema.reader]
        readers: dict[int, Any] = {}
        self._orders: list[GivenOrder] = []
        for node, reader, meta in zip(of_readers, graph.readers, graph.metas, strict=True):
            first = not self._orders
            reader._order = GivenOrder(meta, self._ask if first else None)
            self._orders.append(reader._order)
            readers[id(node)] = reader
        parsers = {k: len(r.parser_inputs()) for k, r in readers.items() if r.parses}
        plan = self._plan = make_plan(graph.nodes, graph.outputs, seeds, parsers)
        self._executor = Executor(
            plan,
            readers,
            num_threads=threads,
            fuse=graph.fuse,
            on_bad_sample=graph.on_bad_sample,
        )
        self._executor.start()
        self._tasks: queue.SimpleQueue[tuple[Task, Iteration, float] | None] = queue.SimpleQueue()
        self._out: queue.SimpleQueue[Result | None] = queue.SimpleQueue()
        self._lock = threading.Lock()
        threading.Thread(target=self._take_all, name="headrace-results", daemon=True).start()

    @ray.method(concurrency_group="control")
    def where(self) -> WorkerAddress:
        """Its whereabouts."""
        context = ray.get_runtime_context()
        address = ray.util.get_node_ip_address()
        return WorkerAddress(context.get_node_id(), address, socket.gethostname(), os.getpid())

    @ray.method(concurrency_group="control")
    def push(self, task: Task) -> None:
        """Begin a task."""
        plan = self._plan
        with self._lock:
            registers = [
                plan.registers[id(n), k] for n in plan.fed_nodes for k in range(len(n.outputs))
            ]
            fed: dict[int, Any] = {
                r: batch.buffer() for r, batch in zip(registers, task.fed, strict=True)
            }
            for order, entries in zip(self._orders, task.entries, strict=True):
                order.give(entries, task.ticket)
            iteration = Iteration(task.number, task.size, fed)
            self._executor.schedule(iteration)
            self._tasks.put((task, iteration, time.perf_counter()))

    @ray.method(concurrency_group="control")
    def refill(self, entries: list[list[int]] | None) -> None:
        """Take in further entries, for what `Result.wanted` asked."""
        for k, order in enumerate(self._orders):
            order.refill(None if entries is None else entries[k])

    @ray.method(concurrency_group="control")
    def stop(self) -> None:
        """End the stream after the tasks begun."""
        self._tasks.put(None)

    @ray.method(concurrency_group="stream")
    def serve(self) -> Iterator[Result]:
        """Yield results, as they are there, in the order of the tasks."""
        while (result := self._out.get()) is not None:
            yield result
            del result  # its memory is used anew

    def _take_all(self) -> None:
        """Hand finished iterations to the stream."""
        ended = 0.0
        while (found := self._tasks.get()) is not None:
            task, done, begun = found
            try:
                self._executor.take()
                batches = [PackedBatch.of(done.buffers[r]) for r in self._plan.outputs]
            except Exception as error:
                result = Result(task.ticket, [], PackedError.of(error))
            else:
                result = Result(
                    task.ticket,
                    batches,
                    skipped=done.skipped,
                    draw_numbers=done.draw_numbers,
                    replacements=done.replacements,
                )
                del batches
            begun, ended = max(begun, ended), time.perf_counter()
            result = result._replace(bad_samples=done.bad_samples, seconds=ended - begun)
            self._out.put(result)
            del found, done, result
        self._out.put(None)

    def _ask(self, ticket: int, count: int) -> None:
        """Ask for entries in place of bad ones."""
        self._out.put(Result(ticket, [], wanted=count))
