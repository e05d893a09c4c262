"""Seeds of random streams: one for each random operator, from the seed of the pipeline."""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from penstock.graph.nodes import OpNode

_WORD = (1 << 64) - 1


def _mixed(value: int) -> int:
    """A bijection of 64-bit words that spreads neighbours far apart.

    The finaliser of SplitMix64: Steele, Lea and Flood, "Fast splittable pseudorandom number
    generators", OOPSLA 2014.
    """
    value = (value + 0x9E3779B97F4A7C15) & _WORD
    value = ((value ^ (value >> 30)) * 0xBF58476D1CE4E5B9) & _WORD
    value = ((value ^ (value >> 27)) * 0x94D049BB133111EB) & _WORD
    return value ^ (value >> 31)


def assign_seeds(nodes: list[OpNode], pipeline_seed: int | None) -> dict[int, int]:
    """The seed of every random operator, by ``id(node)``: its own, or one from the pipeline's.

    Operators count in the order of their creation; those that draw nothing, that nothing uses or
    that have a seed do not count, as in DALI. A pipeline without a seed gets a different one in
    each run.
    """
    base = secrets.randbits(63) if pipeline_seed is None else pipeline_seed
    seeds: dict[int, int] = {}
    number = 0
    for node in sorted(nodes, key=lambda n: n.serial):
        if not node.schema.random:
            continue
        if node.seed is not None:
            seeds[id(node)] = node.seed
            continue
        seeds[id(node)] = _mixed(_mixed(base & _WORD) + number) >> 1
        number += 1
    return seeds
