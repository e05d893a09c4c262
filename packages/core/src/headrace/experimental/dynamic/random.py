"""Random numbers: generators, and the operators that draw from them.

Each call takes seven words of its generator, the argument `rng` or the calling thread's own, and
draws DALI's numbers from them.
"""

from __future__ import annotations

from headrace.experimental.dynamic.functions import function_of
from headrace.experimental.dynamic.rng import RNG, get_default_rng, set_seed
from headrace.operators.support.registry import find

__all__ = [
    "RNG",
    "beta",
    "choice",
    "coin_flip",
    "get_default_rng",
    "normal",
    "set_seed",
    "uniform",
]


def __dir__() -> list[str]:
    return [*__all__]


beta = function_of(find("random.beta"), __name__)
choice = function_of(find("random.choice"), __name__)
coin_flip = function_of(find("random.coin_flip"), __name__)
normal = function_of(find("random.normal"), __name__)
uniform = function_of(find("random.uniform"), __name__)
