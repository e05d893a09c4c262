"""Functions of JAX inside pipelines, under the module path that DALI gives them."""

from __future__ import annotations

from headrace.plugin.jax.function import jax_function

__all__ = ["jax_function"]


def __dir__() -> list[str]:
    return [*__all__]
