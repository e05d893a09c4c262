"""Pipelines: define a graph of operators, run it batch after batch."""

from __future__ import annotations

from penstock.graph.data_node import DataNode
from penstock.pipeline import experimental
from penstock.pipeline.definition import do_not_convert, pipeline_def
from penstock.pipeline.pipeline import Pipeline
from penstock.types import OperatorConcurrency, StreamPolicy

__all__ = [
    "DataNode",
    "OperatorConcurrency",
    "Pipeline",
    "StreamPolicy",
    "do_not_convert",
    "experimental",
    "pipeline_def",
]


def __dir__() -> list[str]:
    return [*__all__]
