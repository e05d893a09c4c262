"""Guards: the samples of a batch for which a node runs.

A guard is a conjunction of predicates, or of their negations. An edge has the samples of the node
that makes it. `headrace.graph.branches` is what branches are written with.
"""

from __future__ import annotations

import threading
from typing import TYPE_CHECKING, NamedTuple

from headrace.errors import UsageError
from headrace.graph.user_line import user_line

if TYPE_CHECKING:
    from headrace.graph.data_node import DataNode


class Term(NamedTuple):
    """One predicate of a guard.

    `predicate`: a number for each sample, on the CPU; any but zero is true. `holds`: true if the
    predicate must be true, False if it must be false. `spreads`: true if nodes that read an edge
    with this term get it from there, as those that read what `headrace.graph.branches.split` makes;
    others are written within the branch.
    """

    predicate: DataNode
    holds: bool
    spreads: bool = False

    @property
    def key(self) -> tuple[int, int, bool]:
        """Key that is equal for equal terms."""
        return id(self.predicate.source), self.predicate.index, self.holds

    def is_of(self, predicate: DataNode) -> bool:
        """True if `predicate` is its own, rather than another edge."""
        return self.key[:2] == (id(predicate.source), predicate.index)


Guard = tuple[Term, ...]
"""The samples for which all terms hold, outermost first: what an inner predicate is made of may
exist only for samples for which the terms before it hold."""

_local = threading.local()


def current() -> Guard:
    """The guard of nodes that are created now on this thread."""
    return getattr(_local, "guard", ())


def set_current(guard: Guard) -> None:
    """Make `guard` that of the nodes that are created from now on on this thread."""
    _local.guard = guard


def guard_of(edges: list[DataNode], branches: dict[int, Term], what: str) -> Guard:
    """The guard of a node that is created now and reads `edges`."""
    guard = current() if edges else ()
    guard = _in_order((*guard, *_spread(edges, branches, {term.key for term in guard})))
    keys = {term.key for term in guard}
    for position, edge in enumerate(edges):
        if edge.source is None:
            continue
        read = keys
        if position in branches:
            read = keys | {branches[position].key}
        if any(term.key not in read for term in edge.source.guard):
            raise UsageError(
                f"{what}, used at {user_line()}, reads `{edge.name}`, which exists only for the "
                "samples of a branch that it is not in. Use it within the branch, or merge it "
                "with what the other samples have. After an `if`, what its branches assign is "
                "merged, items (`images[i] = ...`) and attributes, too; what a method such as "
                "`append`, or another function, puts anywhere is not."
            )
    return guard


def _in_order(terms: Guard) -> Guard:
    """`terms`, each after those that its predicate has, which may be for parts of a batch only."""
    keys = {term.key for term in terms}
    found: dict[tuple[int, int, bool], Term] = {}

    def put(term: Term) -> None:
        if term.key in found:
            return
        source = term.predicate.source
        for outer in source.guard if source is not None else ():
            if outer.spreads or outer.key in keys:
                put(outer)
        found[term.key] = term

    for term in terms:
        put(term)
    return tuple(found.values())


def _spread(
    edges: list[DataNode], branches: dict[int, Term], known: set[tuple[int, int, bool]]
) -> list[Term]:
    """Return the terms besides `known` that a node gets from its inputs."""
    found: dict[tuple[int, int, bool], Term] = {}
    for position, edge in enumerate(edges):
        own = branches.get(position)
        for term in edge.source.guard if edge.source is not None else ():
            if term.spreads and term.key not in known and (own is None or own.key != term.key):
                found.setdefault(term.key, term)
    for node, index, holds in found:
        if (node, index, not holds) in found:
            raise UsageError(
                f"What is used at {user_line()} reads samples of both parts of a batch that was "
                "split. `fn._conditional.merge` joins them."
            )
    return list(found.values())
