"""Unstable interfaces: pipelines as transforms of data sets."""

from __future__ import annotations

from headrace.plugin.pytorch.experimental import proxy

__all__ = ["proxy"]


def __dir__() -> list[str]:
    return [*__all__]
