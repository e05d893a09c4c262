"""Seeds of random streams: one for each random operator, from the seed of the pipeline."""

from __future__ import annotations

import functools
import secrets
from typing import TYPE_CHECKING

from headrace.operators.readers.standard_shuffle import seed_sequence

if TYPE_CHECKING:
    from headrace.graph.nodes import OpNode


@functools.lru_cache(maxsize=16)
def _dali_words(pipeline_seed: int) -> list[int]:
    """The seeds that DALI derives from a pipeline's for its operators, in their order."""
    return seed_sequence([pipeline_seed & 0xFFFFFFFF], 1024)


def assign_seeds(nodes: list[OpNode], pipeline_seed: int | None) -> dict[int, int]:
    """The seed of every random operator, by ``id(node)``: its own, or one from the pipeline's.

    A pipeline without a seed gets a different one in each run.

    Operators are numbered as they come in `nodes`, which is how the outputs need them; those that
    draw nothing and those with a seed of their own do not count. The operators of one call with
    several input sets all have the seed of the first of them. DALI does the same. Readers get
    DALI's seeds, too, so that they shuffle as DALI's do: a training run sees its files in the
    same order.
    """
    base = secrets.randbits(63) if pipeline_seed is None else pipeline_seed
    seeds: dict[int, int] = {}
    shared: dict[int, int] = {}  # by the serial number of the first set's node
    number = 0
    for node in nodes:
        if not node.schema.random:
            continue
        if node.seed is not None:
            seeds[id(node)] = node.seed
            continue
        words = _dali_words(base)
        seed = words[number % len(words)]
        seeds[id(node)] = shared.setdefault(node.draws_with, seed)
        number += 1
    return seeds
