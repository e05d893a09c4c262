"""Guards: the samples of a batch for which a node runs, and how branches are written.

A guard is a conjunction of predicates, or of their negations. An edge has the samples of the node
that makes it. A node reads, of each of its inputs, the samples of its own guard; so there is no
node that splits a batch. `merge` joins the edges of two branches::

    with guarded(is_large):
        small = fn.resize(images, size=(224, 224))
    with guarded(is_large, holds=False):
        padded = fn.crop(images, crop=(224, 224), out_of_bounds_policy="pad")
    images = merge(is_large, small, padded)
"""

from __future__ import annotations

import contextlib
import threading
from typing import TYPE_CHECKING, NamedTuple

from penstock.errors import ArgumentTypeError, MisusedArgumentError, UsageError
from penstock.graph.user_line import user_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from penstock.graph.data_node import DataNode


class Term(NamedTuple):
    """One predicate of a guard.

    Attributes
    ----------
    predicate
        A number for each sample, on the CPU; any but zero is true.
    holds
        Whether the predicate has to be true, or false.
    """

    predicate: DataNode
    holds: bool

    @property
    def key(self) -> tuple[int, int, bool]:
        """What is equal for equal terms."""
        return id(self.predicate.source), self.predicate.index, self.holds


Guard = tuple[Term, ...]
"""The samples for which all terms hold, outermost first: what an inner predicate is made of may
exist only for samples for which the terms before it hold."""

_local = threading.local()


def current() -> Guard:
    """The guard of nodes that are created now on this thread."""
    return getattr(_local, "guard", ())


@contextlib.contextmanager
def guarded(predicate: DataNode, *, holds: bool = True) -> Iterator[None]:
    """Run the nodes that are created in the block only for samples with a true `predicate`.

    Nodes that read nothing (readers, sources, constants, draws without inputs) run for all
    samples, so what they read or draw does not depend on predicates.

    Parameters
    ----------
    predicate
        A single number for each sample, on the CPU; any but zero is true, so is NaN.
    holds
        `False` for the samples with a false `predicate`.
    """
    outer = current()
    _check_predicate(predicate)
    term = Term(predicate, holds)
    if any(term.key == known.key for known in outer):
        inner = outer
    else:
        inner = (*outer, term)
    _local.guard = inner
    try:
        yield
    finally:
        _local.guard = outer


def merge(predicate: DataNode, if_true: DataNode, if_false: DataNode) -> DataNode:
    """Join the edges of two branches: samples of `if_true` where `predicate` is, else of the other.

    Both have one element type, number of dimensions, layout and device.
    """
    from penstock.graph.capture import make_node
    from penstock.operators.support.registry import find

    _check_predicate(predicate)
    if if_true.device != if_false.device:
        raise MisusedArgumentError(
            f'The branches that are merged at {user_line()} are on different devices: "'
            f'{if_true.device}" and "{if_false.device}". `.gpu()` or `.cpu()` moves one of them.'
        )
    return make_node(find("_conditional.merge"), [if_true, if_false, predicate], {}).outputs[0]


def guard_of(edges: list[DataNode], branches: dict[int, Term], what: str) -> Guard:
    """The guard of a node that is created now and reads `edges`.

    Parameters
    ----------
    branches
        For inputs, by position, of which the node reads fewer samples than it runs for: the term
        that these have besides.
    what
        The node, for the message.

    Raises
    ------
    UsageError
        If an edge lacks samples that the node would read.
    """
    guard = current() if edges else ()
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
                "with what the other samples have."
            )
    return guard


def _check_predicate(predicate: DataNode) -> None:
    from penstock.graph.data_node import DataNode

    if not isinstance(predicate, DataNode):
        raise ArgumentTypeError(
            f"The predicate of a branch, at {user_line()}, must be a `DataNode`, got "
            f"{type(predicate).__name__}."
        )
    if predicate.device != "cpu":
        raise MisusedArgumentError(
            f'The predicate of a branch, at {user_line()}, is on the device "{predicate.device}"; '
            "it must be on the CPU. `.cpu()` moves it there."
        )
