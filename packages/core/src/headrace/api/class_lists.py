"""Operators by device, under DALI's names, as programs look them up."""

from __future__ import annotations

from headrace.operators.support.schema_view import find_schema, names_on
from headrace.tracebacks import public

_added: dict[str, set[str]] = {"cpu": set(), "gpu": set()}


def cpu_ops() -> set[str]:
    """Return DALI's names of the operators that run on the CPU, as ``"readers__File"``."""
    return {*names_on("cpu"), *_added["cpu"]}


def gpu_ops() -> set[str]:
    """Return DALI's names of the operators that run on the GPU."""
    return {*names_on("gpu"), *_added["gpu"]}


def mixed_ops() -> set[str]:
    """Return DALI's names of the operators that take CPU data and return GPU data."""
    return {*names_on("mixed")}


def register_cpu_op(name: str) -> None:
    """Add a name to `cpu_ops`, as that of an operator that is put together in Python."""
    _added["cpu"].add(name)


def register_gpu_op(name: str) -> None:
    """Add a name to `gpu_ops`."""
    _added["gpu"].add(name)


@public
def reload() -> None:
    """Check that there is an operator of each name that was added: classes need no reloading.

    A class of an operator that is declared, or that a plugin brings, is there from then on.
    """
    for name in sorted({*_added["cpu"], *_added["gpu"]}):
        find_schema(name)
