"""Errors whose texts have words in common with DALI's: scenarios that fail, and their check.

A row is a scenario that fails in both libraries, with the words that stand in both texts.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from headrace.errors import HeadraceError
from tests.parity.outcomes import DALI, HEADRACE, Library, builtin_class, outcome

Scenario = Callable[[Library], Any]
Rows = list[tuple[Scenario, str]]


def on(data: Any, graph: Callable[[Library, Any], Any], layout: str | None = None) -> Scenario:
    """A pipeline that runs `graph` on `data`."""

    def scenario(lib: Library) -> Any:
        def define() -> Any:
            return graph(lib, lib.fn.external_source(lambda: data, layout=layout))

        return lib.pipe(define, len(data)).run()

    return scenario


def of(graph: Callable[[Library], Any], **settings: Any) -> Scenario:
    """A pipeline that runs `graph`, without inputs."""
    return lambda lib: lib.pipe(lambda: graph(lib), **settings).run()


def conditional(lib: Library, definition: Callable[[], Any]) -> Any:
    settings = {"batch_size": 4, "num_threads": 1, "device_id": None}
    return lib.pipeline_def(definition, enable_conditionals=True, **settings)()


def check_words(rows: Rows) -> None:
    """Check that both libraries say the words, in errors of the same builtin class."""
    wrong = []
    for number, (scenario, words) in enumerate(rows):
        errors = [outcome(library, scenario).error for library in (DALI, HEADRACE)]
        if not all(error is not None and words in str(error).lower() for error in errors):
            wrong.append(f"row {number}: {words!r} is not in both of {errors}")
        elif not isinstance(errors[1], builtin_class(errors[0])):
            wrong.append(f"row {number}: {type(errors[1])} is no {type(errors[0])}")
        elif not isinstance(errors[1], HeadraceError):
            wrong.append(f"row {number}: {errors[1]!r} is none of Headrace's")
    assert not wrong, "\n".join(wrong)
