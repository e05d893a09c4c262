"""The graph of a pipeline on its way to worker processes: packed once, mapped by each of them."""

from __future__ import annotations

import copy
import copyreg
import functools
import importlib
import io
import itertools
import mmap
import os
import pickle
import sys
import weakref
from dataclasses import fields
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace._code_pickler import code_pickler
from headrace.errors import ArgumentTypeError
from headrace.executor.plan import make_plan
from headrace.graph.nodes import OpNode
from headrace.operators.readers.base import Reader
from headrace.operators.support import registry
from headrace.operators.support.schema import OpSchema

if TYPE_CHECKING:
    from headrace.executor.plan import Plan

_ALIGNMENT = 64
_numbers = itertools.count()
_FIELDS = tuple(f.name for f in fields(OpNode))


class Graph(NamedTuple):
    """Everything that a worker must know of a pipeline."""

    plan: Plan
    readers: dict[int, Any]
    fuse: bool
    policy: str
    is_profiled: bool = False
    """True if workers record spans."""


class PackedGraph:
    """A graph in a file in memory: a pickle, and after it its large arrays, which all share. Raises
    `ArgumentTypeError` if part of it cannot be pickled.
    """

    def __init__(self, graph: Graph, outputs: list[Any]) -> None:
        plan = graph.plan
        content = (
            plan.nodes,
            outputs,
            [plan.seeds.get(id(node)) for node in plan.nodes],
            [graph.readers[id(node)] for node in plan.readers],
            graph.fuse,
            graph.policy,
            graph.is_profiled,
            dict(os.environ),
            os.getcwd(),
        )
        buffers: list[pickle.PickleBuffer] = []
        stream = io.BytesIO()
        try:
            graph_pickler()(stream, protocol=5, buffer_callback=buffers.append).dump(content)
        except Exception as error:
            raise ArgumentTypeError(f"the graph cannot be pickled: {error}") from error
        # A class has no module where it was declared by `exec` with names of its own.
        modules = {node.schema.cls.__module__ or "" for node in plan.nodes}
        self.modules = sorted(m for m in modules if m.startswith("headrace.operators."))
        """Modules of the library that declare its operators."""
        parts = [memoryview(stream.getbuffer()), *(b.raw() for b in buffers)]
        self.number = next(_numbers)
        self.file = os.memfd_create("headrace", os.MFD_CLOEXEC)
        weakref.finalize(self, os.close, self.file)
        self.parts: list[tuple[int, int]] = []
        """Begin and size of each part of the file."""
        end = 0
        for part in parts:
            begin = -(-end // _ALIGNMENT) * _ALIGNMENT
            done = 0
            while done < part.nbytes:
                done += os.pwrite(self.file, part[done : done + (1 << 30)], begin + done)
            end = begin + part.nbytes
            self.parts.append((begin, part.nbytes))


def packed_object(value: Any) -> bytes:
    """`value`, pickled as part of a graph would be."""
    stream = io.BytesIO()
    graph_pickler()(stream, protocol=5).dump(value)
    return stream.getvalue()


def unpack(file: int, parts: list[tuple[int, int]]) -> Graph:
    """The graph in a file that `PackedGraph` has made."""
    # Private: what is written to, contrary to what operators may do, is seen by no other process.
    mapped = memoryview(mmap.mmap(file, 0, access=mmap.ACCESS_COPY))
    views = [mapped[begin : begin + size] for begin, size in parts]
    nodes, outputs, seeds, readers, *how, environment, folder = pickle.loads(
        views[0], buffers=views[1:]
    )
    os.environ.clear()
    os.environ.update(environment)
    os.chdir(folder)
    known = {id(n): seed for n, seed in zip(nodes, seeds, strict=True) if seed is not None}
    of_readers = [id(node) for node in nodes if node.schema.reader]
    opened = dict(zip(of_readers, readers, strict=True))
    parsers = {k: len(r.parser_inputs()) for k, r in opened.items() if r.parses}
    apart = {k for k, r in opened.items() if r.index.reads_apart}
    return Graph(make_plan(nodes, outputs, known, parsers, apart), opened, *how)


def _called_elsewhere(*_: Any) -> None:
    raise AssertionError("a worker has called a function that it does not have")


@functools.cache
def graph_pickler(*, with_functions: bool = False) -> type[pickle.Pickler]:
    """Return a pickler that takes by value objects that a new process cannot import; functions of
    the user's travel with the graph only where that is asked for.
    """

    class GraphPickler(code_pickler()):  # type: ignore[misc]
        def reducer_override(self, value: Any) -> Any:
            """Return how to pickle `value`, or `NotImplemented` for the default."""
            if type(value) is OpNode:
                # Sources are asked in the parent, which owns the pipeline, too.
                state = {name: getattr(value, name) for name in _FIELDS}
                state |= {"owner": None, "input_queue": value.input_queue is not None or None}
                if value.input_queue is not None:  # they may hold anything, and all the data
                    state["args"] = {**value.args, "source": None, "cuda_stream": None}
                if value.schema.calls_user and not with_functions:
                    state["args"] = {**value.args, "function": _called_elsewhere}
                if value.args.get("sampler") is not None:
                    state["args"] = {**value.args, "sampler": None}
                return copyreg.__newobj__, (OpNode,), (None, state)  # type: ignore[attr-defined]
            if type(value) is OpSchema and _is_importable(value):
                return _schema, (value.cls.__module__, value.name)
            if isinstance(value, Reader):
                # The order is drawn in the parent, too: what a user has written for it may need
                # modules that take long to import, and memory in each worker.
                state = {k: v for k, v in vars(value).items() if k != "_order"}
                if getattr(value.args, "sampler", None) is not None:
                    state["args"] = copy.copy(value.args)
                    state["args"].sampler = None
                return copyreg.__newobj__, (type(value),), state  # type: ignore[attr-defined]
            return super().reducer_override(value)

    return GraphPickler


def _is_importable(schema: OpSchema) -> bool:
    """Return True if a new process gets this declaration by importing its module."""
    import cloudpickle  # type: ignore[import-untyped]

    name = schema.cls.__module__
    module = sys.modules.get(name)
    by_value = {"__main__", *cloudpickle.list_registry_pickle_by_value()}
    if module is None or name in by_value or registry.find(schema.name) is not schema:
        return False
    found: Any = module
    for part in schema.cls.__qualname__.split("."):
        found = getattr(found, part, None)
    return found is schema.cls


def _schema(module: str, name: str) -> OpSchema:
    importlib.import_module(module)
    return registry.find(name)
