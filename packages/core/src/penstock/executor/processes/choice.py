"""Whether the samples of a pipeline are carried by threads or by worker processes."""

from __future__ import annotations

import os
import sys
from typing import TYPE_CHECKING

from penstock.config import WORKERS
from penstock.errors import ArgumentChoiceError

if TYPE_CHECKING:
    from penstock.executor.plan import Plan

CHOICES = ("threads", "processes")


def check_workers(workers: str | None) -> str | None:
    """`workers`, if a pipeline can have such.

    Raises
    ------
    ArgumentChoiceError
        If it cannot.
    """
    if workers is not None and workers not in CHOICES:
        raise ArgumentChoiceError(
            f'`workers` is {workers!r}; it can be "threads", "processes", or None, which leaves '
            "the choice to the engine."
        )
    return workers


def why_threads(workers: str | None, plan: Plan) -> str:
    """The reason for which samples are carried by threads; empty for worker processes.

    Parameters
    ----------
    workers
        What the user asks for.
    plan
        The graph.
    """
    if not wants_processes(workers):
        return "as asked for" if workers or WORKERS.value() == "threads" else "the default"
    if sys.platform != "linux" or not hasattr(os, "memfd_create") or not sys.executable:
        return "worker processes need Linux, for shared memory without a name"
    nodes = [n for s in plan.stages if s.device == "cpu" for n in s.sample_nodes]
    if not nodes:
        return "no operator on the CPU works on single samples"
    if plan.streams and all(node.schema.reader for node in nodes):
        return "nothing but reading is done on the CPU, which threads do without the interpreter"
    return ""


def wants_processes(workers: str | None) -> bool:
    """Whether worker processes are to be used, as far as `workers` and the environment tell."""
    return (workers or WORKERS.value()) == "processes"
