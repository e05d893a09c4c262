"""Branches: blocks whose nodes run for some samples, and the operator that joins them.

A node reads, of each of its inputs, the samples of its own guard (see `headrace.graph.guards`); so
there is no node that splits a batch. `merge` joins the edges of two branches::

    with guarded(is_large):
        small = fn.resize(images, size=(224, 224))
    with guarded(is_large, holds=False):
        padded = fn.crop(images, crop=(224, 224), out_of_bounds_policy="pad")
    images = merge(is_large, small, padded)

`split` makes the samples of either branch an edge: nodes that read it run for these only, without a
block.
"""

from __future__ import annotations

import contextlib
from collections.abc import Iterator

from headrace.errors import ArgumentTypeError, MisusedArgumentError
from headrace.graph.capture import make_node
from headrace.graph.data_node import DataNode
from headrace.graph.guards import Term, current, set_current
from headrace.graph.user_line import user_line
from headrace.operators.support.registry import find


@contextlib.contextmanager
def guarded(predicate: DataNode, *, holds: bool = True, spreads: bool = False) -> Iterator[None]:
    """Run the nodes that are created in the block only for samples with a true `predicate`.

    Nodes that read nothing (readers, sources, constants, draws without inputs) run for all
    samples, so what they read or draw does not depend on predicates. `batch_permutation` is the
    exception: it permutes the samples of its branch.
    """
    outer = current()
    _check_predicate(predicate)
    term = Term(predicate, holds, spreads)
    if any(term.key == known.key for known in outer):
        inner = outer
    else:
        inner = (*outer, term)
    set_current(inner)
    try:
        yield
    finally:
        set_current(outer)


def split(data: DataNode, predicate: DataNode) -> list[DataNode]:
    """The samples of `data` for which `predicate` is true, and the others.

    Nodes that read one of them run for these samples; `merge` joins what comes of both.
    """
    _check_predicate(predicate)
    parts = []
    for holds in (True, False):
        with guarded(predicate, holds=holds, spreads=True):
            parts += make_node(find("copy"), [data], {}).outputs
    return parts


def split_of(if_true: DataNode, if_false: DataNode) -> Term | None:
    """The term that `if_true` has of a `split`, and `if_false` its opposite; the innermost one."""
    one, other = (
        edge.source.guard if edge.source is not None else () for edge in (if_true, if_false)
    )
    opposites = {(term.key[:2], not term.holds) for term in other if term.spreads}
    found = [term for term in one if term.spreads and (term.key[:2], term.holds) in opposites]
    return found[-1] if found else None


def merge(
    predicate: DataNode, if_true: DataNode, if_false: DataNode, *, variable: str | None = None
) -> DataNode:
    """Join the edges of two branches: samples of `if_true` where `predicate` is, else of the other.

    Both have one element type, number of dimensions, layout and device.
    """
    _check_predicate(predicate)
    if if_true.device != if_false.device:
        raise MisusedArgumentError(
            f'The branches that are merged at {user_line()} are on different devices: "'
            f'{if_true.device}" and "{if_false.device}". `.gpu()` or `.cpu()` moves one of them.'
        )
    edges = [if_true, if_false, predicate]
    where = [e.source.user_line if e.source else "an unknown line" for e in edges[:2]]
    arguments = {"variable": variable, "lines": where}
    return make_node(find("_conditional.merge"), edges, arguments).outputs[0]


def _check_predicate(predicate: DataNode) -> None:
    if not isinstance(predicate, DataNode):
        raise ArgumentTypeError(
            f"The predicate of a branch, at {user_line()}, must be a `DataNode`, got "
            f"{type(predicate).__name__}."
        )
    if predicate.device != "cpu":
        raise MisusedArgumentError(
            f"Invalid device \"{predicate.device}\" for argument 'predicate' of operator "
            f"'headrace.fn._conditional.split'. Conditions, as the one at {user_line()}, must be "
            "on the CPU; `.cpu()` moves them there."
        )
