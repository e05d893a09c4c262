"""Arguments that say which workers there are, checked."""

from __future__ import annotations

import numbers
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from headrace.errors import ArgumentTypeError, ArgumentValueError, UnknownArgumentError

_RESOURCES = ("num_cpus", "memory", "resources", "runtime_env", "scheduling_strategy")
"""Options of a Ray actor that `resources` may have, besides names of custom resources."""
_NEVER = ("num_gpus",)


@dataclass(frozen=True)
class Options:
    """Arguments of `distribute`, normalised."""

    least: int
    most: int
    actor: dict[str, Any]
    """Options of the actors."""
    threads: int
    """Threads of each worker."""
    ordered: bool
    cut: Any
    max_restarts: int
    bytes_in_flight: int | None
    start_timeout_seconds: float | None


def checked(
    num_workers: Any,
    resources: Any,
    ordered: Any,
    cut: Any,
    max_restarts: Any,
    bytes_in_flight: Any,
    start_timeout_seconds: Any,
) -> Options:
    """The options for these arguments of `distribute`."""
    least, most = bounds(num_workers)
    actor = _actor(resources)
    cpus = actor["num_cpus"]
    if not isinstance(ordered, bool):
        raise ArgumentTypeError(f"`ordered` is {ordered!r}; expected True or False.")
    _whole("max_restarts", max_restarts, -1)
    if bytes_in_flight is not None:
        _whole("bytes_in_flight", bytes_in_flight, 1)
    timeout: Any = start_timeout_seconds
    if timeout is not None and not (isinstance(timeout, numbers.Real) and float(timeout) > 0):
        raise ArgumentValueError(
            f"`start_timeout_seconds` is {timeout!r}; it must be a positive number, or None to "
            "wait for ever."
        )
    return Options(
        least,
        most,
        actor,
        max(1, int(cpus)),
        ordered,
        cut,
        int(max_restarts),
        bytes_in_flight,
        None if timeout is None else float(timeout),
    )


def bounds(given: Any) -> tuple[int, int]:
    """The least and the greatest number of workers that `num_workers` says."""
    if isinstance(given, (tuple, list)) and len(given) == 2:
        least, most = (_whole("num_workers", each, 1) for each in given)
        if least > most:
            raise ArgumentValueError(
                f"`num_workers` is {given!r}: the first is the least number and must not exceed "
                "the second, the greatest."
            )
        return least, most
    number = _whole("num_workers", given, 1, ", or a pair of the least and the greatest number")
    return number, number


def _whole(name: str, value: Any, least: int, more: str = "") -> int:
    if isinstance(value, bool) or not isinstance(value, numbers.Integral):
        raise ArgumentTypeError(f"`{name}` is {value!r}; expected an integer{more}.")
    if value < least:
        raise ArgumentValueError(f"`{name}` is {value}; it must be at least {least}.")
    return int(value)


def _actor(given: Any) -> dict[str, Any]:
    if given is None:
        return {"num_cpus": 1}
    if not isinstance(given, Mapping):
        raise ArgumentTypeError(
            f"`resources` is {given!r}; expected a dictionary of what each worker takes, such as "
            '{"num_cpus": 2}.'
        )
    found: dict[str, Any] = {"num_cpus": 1}
    own: dict[str, Any] = {}
    for name, value in given.items():
        if name in _NEVER:
            raise UnknownArgumentError(
                f"`resources` has {name!r}; workers run on processors. What needs a GPU runs where "
                "the trainer is."
            )
        if name in _RESOURCES:
            found[name] = value
        elif isinstance(value, numbers.Real) and not isinstance(value, bool):
            own[name] = value  # a resource that the cluster's nodes were started with
        else:
            raise UnknownArgumentError(
                f"`resources` has {name!r}: {value!r}; expected an amount, or one of the options "
                f"{', '.join(map(repr, _RESOURCES))}."
            )
    cpus = found["num_cpus"]
    if isinstance(cpus, bool) or not isinstance(cpus, numbers.Real) or cpus <= 0:
        raise ArgumentValueError(
            f"`resources` has `num_cpus` {cpus!r}; it must be a positive number."
        )
    if own:
        found["resources"] = {**found.get("resources", {}), **own}
    return found
