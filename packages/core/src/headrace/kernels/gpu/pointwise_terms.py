"""Terms computed for each element: a tree of calls of device functions.

Terms are compared by identity: their maker keeps and reuses them, so that the kernel generated
and compiled for one is found without walking the tree.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np


@dataclass(frozen=True, slots=True, eq=False)
class Source:
    """The element of batch number `index` that goes with the output's."""

    index: int
    dtype: np.dtype
    depth = 0


@dataclass(frozen=True, slots=True, eq=False)
class Number:
    """The sample's value in table number `index`, which the host fills for each batch."""

    index: int
    dtype: np.dtype
    depth = 0


@dataclass(frozen=True, slots=True, eq=False)
class Constant:
    """A number, the same at all times, as CUDA text."""

    text: str
    dtype: np.dtype
    depth = 0


@dataclass(frozen=True, slots=True, eq=False)
class Fault:
    """Flag, passed to a function as its last argument, that it sets if it cannot compute an
    element.
    """

    index: int
    depth = 0


class Call:
    """A device function of further terms.

    `function`: how it is called: ``"op_add<float>"``.
    """

    __slots__ = ("depth", "dtype", "function", "heavy", "operands")

    def __init__(
        self, function: str, operands: tuple[Any, ...], dtype: np.dtype, *, heavy: bool = False
    ) -> None:
        self.function = function
        self.operands: tuple[Term | Fault, ...] = operands
        self.dtype = dtype
        self.heavy = heavy
        self.depth: int = 1 + max(o.depth for o in operands)


Term = Source | Number | Constant | Call


@lru_cache(maxsize=4096)
def source(index: int, dtype: np.dtype) -> Source:
    """The one `Source` of this number and type."""
    return Source(index, dtype)


@lru_cache(maxsize=4096)
def number(index: int, dtype: np.dtype) -> Number:
    """The one `Number` of this number and type."""
    return Number(index, dtype)


@lru_cache(maxsize=4096)
def fault(index: int) -> Fault:
    """The one `Fault` of this number."""
    return Fault(index)


@lru_cache(maxsize=1024)
def substituted(
    term: Term, sources: tuple[Term, ...], numbers: tuple[int, ...], faults: tuple[int, ...]
) -> Term:
    """`term` with other leaves."""

    def leaf(found: Any) -> Any:
        if isinstance(found, Source):
            return sources[found.index]
        if isinstance(found, Number):
            return number(numbers[found.index], found.dtype)
        if isinstance(found, Fault):
            return fault(faults[found.index])
        return found

    return rebuilt(term, leaf)


def rebuilt(term: Term, leaf: Callable[[Any], Any]) -> Term:
    """`term` with every leaf replaced by what `leaf` makes of it; shared parts stay shared."""
    done: dict[int, Any] = {}

    def walk(node: Any) -> Any:
        if not isinstance(node, Call):
            return leaf(node)
        if id(node) not in done:
            operands = tuple(walk(o) for o in node.operands)
            same = all(a is b for a, b in zip(operands, node.operands, strict=True))
            done[id(node)] = (
                node if same else Call(node.function, operands, node.dtype, heavy=node.heavy)
            )
        return done[id(node)]

    return walk(term)  # type: ignore[no-any-return]


def written(term: Term, leaf: Callable[[Any], str], call: Callable[[Call, list[str]], str]) -> str:
    """Name of the value of `term`: `leaf` and `call`, given those of operands, name its parts."""
    names: dict[int, str] = {}
    for node in nodes(term):
        if isinstance(node, Call):
            names[id(node)] = call(node, [names[id(o)] for o in node.operands])
        else:
            names[id(node)] = leaf(node)
    return names[id(term)]


def nodes(term: Term) -> Iterator[Term | Fault]:
    """Every part of `term`, once, operands before what reads them."""
    seen: set[int] = set()

    def walk(node: Any) -> Iterator[Any]:
        if id(node) in seen:
            return
        seen.add(id(node))
        for operand in getattr(node, "operands", ()):
            yield from walk(operand)
        yield node

    yield from walk(term)
