"""Rewrites a graph so that work in front of `fn.cache` is done for samples that are not kept.

The reader tells of each entry what is kept of it. What only caches use runs for the samples that
one of these lacks; there is no other code for it than that of conditionals::

    images = fn.cache(fn.resize(fn.decoders.image(files), size=224))

becomes ::

    with guarded(absent):
        stored = _cache.store(fn.resize(fn.decoders.image(files), size=224), record)
    with guarded(absent, holds=False):
        loaded = _cache.load(record)
    images = merge(absent, stored, loaded)
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from dataclasses import fields, is_dataclass, replace
from enum import Enum
from typing import Any

import numpy as np

from headrace._version import __version__
from headrace.config import DECODER
from headrace.errors import UsageError, located
from headrace.graph.data_node import DataNode
from headrace.graph.guards import Guard, Term
from headrace.graph.nodes import OpNode
from headrace.operators.cache.lookup import Lookups
from headrace.operators.cache.store import Store
from headrace.operators.readers.base import READER_ARGS, Reader
from headrace.operators.support.argument_types import PathArg, PathListArg
from headrace.operators.support.operator import BatchOperator
from headrace.operators.support.registry import find
from headrace.operators.support.schema import OpSchema

CACHES = "caches"
"""The argument of a reader that has its `ReaderCaches`."""

Users = set[int | None]
"""Numbers of the caches that an edge is used for, and `None` if for something else."""


class ReaderCaches:
    """The caches of one reader, and what its outputs are used for."""

    def __init__(self) -> None:
        self.numbers: list[int] = []
        self.stores: list[Store] = []
        self.groups: list[frozenset[int]] = []
        self.users: list[Users] = []
        """Of each of the outputs that the reader is declared with."""
        self.parsed = 0
        """Number of outputs, the first ones, that are not there for entries which are not read."""

    def attach(self, reader: Reader) -> None:
        """Have an opened reader tell of its entries what is kept."""
        columns = len(reader.index.columns)
        parsed = len(self.users) - columns
        wanted: Users = set().union(*self.users[:parsed])
        reads = -1
        groups = [frozenset(map(self.numbers.index, group)) for group in self.groups]
        if wanted and None not in wanted:
            reads = len(groups)
            self.parsed = parsed if reader.parses else 0
        kept = [k for k in range(columns) if self.users[parsed + k] - {None}]
        last = frozenset(self.numbers.index(n) for n in wanted - {None} if n is not None)
        for store in self.stores:
            store.open(len(reader.index))
        reader.index.cached = Lookups(self.stores, [*groups, last], reads, kept)

    def guard(self, node: OpNode) -> Guard:
        """The samples that the first outputs, if they are `parsed`, are there for."""
        return (Term(node.outputs[-1], True),) if self.parsed else ()


def expand_caches(
    nodes: list[OpNode], outputs: list[DataNode]
) -> tuple[list[OpNode], list[DataNode]]:
    """Take the place of `fn.cache` in a graph, whose nodes are in topological order.

    The nodes given are left as they are; where there is a cache, copies of all are returned.
    """
    found = [node for node in nodes if node.schema.name == "cache"]
    if not found:
        return nodes, outputs
    return _Expanded(nodes, outputs, found).made


class _Expanded:
    """A copy of a graph, its caches in place."""

    def __init__(self, nodes: list[OpNode], outputs: list[DataNode], caches: list[OpNode]) -> None:
        self._users = _users(nodes, outputs, caches)
        self._nodes: list[OpNode] = []
        self._edges: dict[tuple[int, int], DataNode] = {}
        self._numbers = {id(node): k for k, node in enumerate(caches)}
        self._of_reader: dict[int, ReaderCaches] = {}
        self._reader: dict[int, OpNode] = {}
        """The reader of each cache, by its number."""
        self._guarded: dict[int, frozenset[int]] = {}
        """By ``id(node)``, the caches that a node runs for, where it runs for nothing else."""
        for number, node in enumerate(caches):
            try:
                self._find_reader(number, node)
            except Exception as error:
                raise located(error, node.where()) from error
        for node in nodes:
            own: Users = set().union(*self._users[id(node)])
            if node.schema.reader or not node.sources or id(node) in self._numbers:
                continue
            if own and None not in own:
                group = frozenset(n for n in own if n is not None)
                self._guarded[id(node)] = group
                groups = self._of_reader[id(self._reader[min(group)])].groups
                if group not in groups:
                    groups.append(group)
        for node in nodes:
            if id(node) in self._numbers:
                self._put_cache(self._numbers[id(node)], node)
            else:
                self._put(node)
        self.made = self._nodes, [self._edge(edge)._on(edge.device) for edge in outputs]

    def _find_reader(self, number: int, node: OpNode) -> None:
        args = node.args
        node.schema.cls(args).check_constants()
        before = _before(node.inputs[0])
        readers = [n for n in before if n.schema.reader]
        _check(before, readers, args["key"])
        self._reader[number] = reader = readers[0]
        caches = self._of_reader.setdefault(id(reader), ReaderCaches())
        caches.users = self._users[id(reader)]
        caches.numbers.append(number)
        caches.groups.append(frozenset([number]))
        digest = _digest(before, node.inputs[0], args["key"])
        if args["format"] is not None:
            digest = f"{digest}-{args['format']}-{args['quality']}"
        caches.stores.append(Store(args["where"], digest, args["limit_bytes"], node.user_line))

    def _edge(self, edge: DataNode) -> DataNode:
        return self._edges[id(edge.source), edge.index]

    def _guard(self, node: OpNode) -> Guard:
        return tuple(Term(self._edge(t.predicate), t.holds) for t in node.guard)

    def _absent(self, reader: OpNode, group: frozenset[int]) -> DataNode:
        """The predicate for samples that any of these caches lacks."""
        caches = self._of_reader[id(reader)]
        first = len(reader.outputs) + len(caches.stores)
        return self._edges[id(reader), first + caches.groups.index(group)]

    def _put(self, node: OpNode) -> None:
        guard = self._guard(node)
        if id(node) in self._guarded:
            group = self._guarded[id(node)]
            guard = (Term(self._absent(self._reader[min(group)], group), True), *guard)
        copy = replace(
            node,
            inputs=[self._edge(e)._on(e.device) for e in node.inputs],
            tensor_args={name: self._edge(e) for name, e in node.tensor_args.items()},
            guard=guard,
            outputs=[],
        )
        count = len(node.outputs)
        caches = self._of_reader.get(id(node))
        if caches is not None:
            copy.args = {**node.args, CACHES: caches}
            count += len(caches.stores) + len(caches.groups) + 1
        self._add(copy, count, node)

    def _add(self, copy: OpNode, count: int, original: OpNode) -> None:
        copy.outputs = [DataNode.of(copy, index, count) for index in range(count)]
        for index, edge in enumerate(copy.outputs):
            self._edges[id(original), index] = edge
        self._nodes.append(copy)

    def _put_cache(self, number: int, node: OpNode) -> None:
        reader, guard = self._reader[number], self._guard(node)
        caches = self._of_reader[id(reader)]
        position = caches.numbers.index(number)
        record = self._edges[id(reader), len(reader.outputs) + position]
        absent = self._absent(reader, frozenset([number]))
        data = self._edge(node.inputs[0])
        how = {name: node.args[name] for name in ("format", "quality")}
        store = {"store": caches.stores[position], **how}

        def make(name: str, inputs: list[DataNode], args: dict[str, Any], guard: Guard) -> DataNode:
            schema = find(name)
            arguments = {a.name: a.default for a in schema.args.values()} | args
            called = f"{node.name}.{name.rpartition('.')[2]}"
            made = replace(
                *(node,),
                schema=schema,
                name=called,
                device="cpu",
                inputs=inputs,
                args=arguments,
                guard=guard,
                outputs=[],
            )
            self._add(made, 1, node)
            return made.outputs[0]

        stored = make("_cache.store", [data, record], store, (Term(absent, True), *guard))
        loaded = make("_cache.load", [record, data], store, (Term(absent, False), *guard))
        make("_conditional.merge", [stored, loaded, absent], {}, guard)


def _users(
    nodes: list[OpNode], outputs: list[DataNode], caches: list[OpNode]
) -> dict[int, list[Users]]:
    """By ``id(node)``, what each of its outputs is used for."""
    found: dict[int, list[Users]] = {id(n): [set() for _ in n.outputs] for n in nodes}
    numbers = {id(node): k for k, node in enumerate(caches)}
    for edge in outputs:
        found[id(edge.source)][edge.index].add(None)
    for node in reversed(nodes):
        own: Users = set().union(*found[id(node)])
        if node.preserve:
            own.add(None)
        number = numbers.get(id(node))
        for edge in node.sources:
            is_cached = number is not None and edge is node.inputs[0]
            used: Users = {number} if is_cached else {None} if number is not None else own
            found[id(edge.source)][edge.index].update(used)
    return found


def _before(edge: DataNode) -> list[OpNode]:
    """The nodes that an edge is made by, in topological order."""
    found: dict[int, OpNode] = {}
    stack = [(edge.source, False)]
    while stack:
        node, is_done = stack.pop()
        assert node is not None
        if is_done:
            found[id(node)] = node
        elif id(node) not in found:
            stack.append((node, True))
            stack += [(e.source, False) for e in reversed(node.sources)]
    return list(found.values())


def _check(before: list[OpNode], readers: list[OpNode], key: str | None) -> None:
    """Check that what is made by these nodes follows from one file alone."""
    for node in before:
        name = f"`{node.schema.written or 'fn.' + node.schema.name}`, created at {node.user_line}"
        if node.schema.reader:
            continue
        if node.schema.random:
            raise UsageError(
                f"{name}, lies in front of the cache and draws random numbers: samples that are "
                "kept would have the same ones in every epoch. Put `fn.cache` in front of it."
            )
        if node.input_queue is not None:
            raise UsageError(
                f"{name}, lies in front of the cache: what is fed comes from no file by which a "
                "sample could be known again. `fn.cache` keeps what follows from a reader."
            )
        if node.schema.calls_user:
            if key is None:
                raise UsageError(
                    f"{name}, lies in front of the cache, and nothing tells when the code of your "
                    "function changes. Give `fn.cache` a `key`, and another one with other code."
                )
        elif issubclass(node.schema.cls.for_arguments(node.args), BatchOperator):
            raise UsageError(
                f"{name}, lies in front of the cache and works on whole batches: what it makes of "
                "a sample may depend on the others, which differ from epoch to epoch. Put "
                "`fn.cache` in front of it."
            )
    if len(readers) != 1:
        these = " and ".join(f"`fn.{n.schema.name}` at {n.user_line}" for n in readers)
        raise UsageError(
            f"What is cached is made of the samples of {these or 'no reader'}; a sample that is "
            "kept has to come from exactly one reader, by whose file it is known again."
        )


def _digest(before: list[OpNode], edge: DataNode, key: str | None) -> str:
    """A name of what these nodes do to a file."""
    numbers = {id(node): k for k, node in enumerate(before)}

    def place(edge: DataNode) -> tuple[int, int]:
        return numbers[id(edge.source)], edge.index

    digest = hashlib.blake2b(digest_size=16)
    digest.update(repr((__version__, DECODER.value(), key, place(edge))).encode())
    for node in before:
        schema = node.schema
        if not schema.is_librarys and key is None:
            raise UsageError(
                f"`fn.{schema.name}`, created at {node.user_line}, is an operator of yours, and "
                "nothing tells when its code changes. Give `fn.cache` a `key`, and another one "
                "with other code."
            )
        args: Mapping[str, Any] = node.args
        if schema.reader:
            args = _args_of_parser(schema, node.args)
        links = [place(e) for e in node.inputs]
        named = [(name, place(e)) for name, e in sorted(node.tensor_args.items())]
        guard = [(place(term.predicate), term.holds) for term in node.guard]
        said = schema.name, node.device, links, named, guard, _plain(dict(args), node, key)
        digest.update(repr(said).encode(errors="surrogatepass"))
    return digest.hexdigest()


def _args_of_parser(schema: OpSchema, args: Mapping[str, Any]) -> dict[str, Any]:
    """The arguments of a reader that say what is made of a file, and not which ones are read."""
    if schema.name == "readers.mix":
        given = [(find(each["operator"]), each) for each in args["readers"]]
        return {
            "readers": [
                (own.name, each["outputs"], _args_of_parser(own, each["arguments"]))
                for own, each in given
            ]
        }
    listing = {arg.name for arg in READER_ARGS} | {"shuffle_after_epoch", "seed"}
    listing |= {"shuffle_after_epoch_seed", "labels"}
    paths = {a.name for a in schema.args.values() if a.type in (PathArg, PathListArg)}
    return {k: v for k, v in args.items() if k not in listing | paths}


def _plain(value: Any, node: OpNode, key: str | None) -> Any:
    """Parts that tell `value` from other ones, made of tuples, text and numbers."""

    def inner(value: Any) -> Any:
        return _plain(value, node, key)

    if value is None or isinstance(value, (bool, int, float, complex, str, bytes)):
        return type(value).__name__, repr(value)
    if isinstance(value, Enum):
        return type(value).__name__, value.name
    if isinstance(value, (np.ndarray, np.generic)):
        array = np.ascontiguousarray(value)
        content = hashlib.blake2b(array.tobytes(), digest_size=16).hexdigest()
        return array.dtype.str, array.shape, content
    if isinstance(value, (np.dtype, type)):
        return str(value)
    if isinstance(value, (list, tuple)):
        return tuple(map(inner, value))
    if isinstance(value, Mapping):
        return tuple((str(k), inner(v)) for k, v in sorted(value.items(), key=lambda i: str(i[0])))
    if is_dataclass(value):
        return type(value).__name__, [inner(getattr(value, f.name)) for f in fields(value)]
    if key is not None:
        return getattr(value, "__qualname__", type(value).__qualname__)
    raise UsageError(
        f"`fn.{node.schema.name}`, created at {node.user_line}, has an argument of type "
        f"{type(value).__name__}, which nothing tells from another one. Give `fn.cache` a `key`, "
        "and another one when that changes."
    )
