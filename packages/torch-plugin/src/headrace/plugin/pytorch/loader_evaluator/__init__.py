"""How long a training waits for its data, and how fast it were if it did not."""

from __future__ import annotations

from headrace.plugin.pytorch.loader_evaluator.loader import LoaderEvaluator

__all__ = ["LoaderEvaluator"]


def __dir__() -> list[str]:
    return [*__all__]
