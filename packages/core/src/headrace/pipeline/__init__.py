"""Pipelines: define a graph of operators, run it batch after batch."""

from __future__ import annotations

from headrace.graph.data_node import DataNode
from headrace.pipeline import experimental
from headrace.pipeline.definition import do_not_convert, pipeline_def
from headrace.pipeline.pipeline import Pipeline
from headrace.types import OperatorConcurrency, StreamPolicy

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
