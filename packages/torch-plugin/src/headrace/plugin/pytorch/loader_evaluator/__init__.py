"""Measurement of the time that a training waits for its data, and of its speed without the wait."""

from __future__ import annotations

from headrace.plugin.pytorch.loader_evaluator.loader import LoaderEvaluator

__all__ = ["LoaderEvaluator"]


def __dir__() -> list[str]:
    return [*__all__]
