"""Run one scenario in real DALI and in Headrace and compare what a user sees.

A scenario is written once, as a function of the library, and returns plain data, tensors, batches
or outputs of a pipeline::

    def scenario(lib):
        pipe = lib.pipe(lambda: lib.fn.random.uniform(seed=1))
        return pipe.run()


    assert_same(scenario)

What comes out is compared as plain data. Where DALI raises an error, Headrace has to raise one of
its own that is an instance of the same builtin class; where DALI warns, Headrace has to.
"""

from __future__ import annotations

import builtins
import contextlib
import enum
import io
import math
import re
import sys
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import nvidia.dali
import nvidia.dali.backend
import nvidia.dali.data_node
import nvidia.dali.fn
import nvidia.dali.math
import nvidia.dali.ops
import nvidia.dali.pipeline
import nvidia.dali.types

import headrace
import headrace.backend
import headrace.data_node
import headrace.errors
import headrace.fn
import headrace.math
import headrace.ops
import headrace.pipeline
import headrace.tensors
import headrace.types
from headrace.graph.user_line import own_folders


class Library:
    """One of the two libraries, with what scenarios need most."""

    def __init__(self, name: str, module: Any) -> None:
        self.name = name
        self.module = module
        self.fn, self.ops, self.types = module.fn, module.ops, module.types
        self.math, self.backend = module.math, module.backend
        self.pipeline, self.Pipeline = module.pipeline, module.Pipeline
        self.pipeline_def, self.newaxis = module.pipeline_def, module.newaxis
        self.DataNode = module.data_node.DataNode
        tensors = module.tensors
        self.TensorCPU, self.TensorListCPU = tensors.TensorCPU, tensors.TensorListCPU

    def pipe(self, graph: Callable[[], Any], batch_size: int = 2, **settings: Any) -> Any:
        """A pipeline whose definition is `graph`."""
        settings = {"num_threads": 1, "device_id": None, "seed": 7, **settings}
        return self.pipeline_def(graph, batch_size=batch_size, **settings)()

    def source(self, data: Any, graph: Callable[[Any], Any] | None = None, **settings: Any) -> Any:
        """A pipeline that runs `graph` on the batch `data`, the same in each iteration."""

        def define():
            node = self.fn.external_source(source=lambda: data)
            return node if graph is None else graph(node)

        return self.pipe(define, settings.pop("batch_size", len(data)), **settings)


DALI = Library("dali", nvidia.dali)
HEADRACE = Library("headrace", headrace)


@dataclass
class Outcome:
    """What a user sees of a scenario."""

    value: Any = None
    error: BaseException | None = None
    warned: tuple[type[Warning], ...] = ()
    printed: bool = False

    def __str__(self) -> str:
        if self.error is not None:
            return f"{[c.__name__ for c in type(self.error).__mro__]}: {str(self.error)[-500:]}"
        return f"{self.value!r}, warned {[w.__name__ for w in self.warned]}"


def plain(value: Any) -> Any:
    """`value` as data that compares equal if a user would see the same."""
    if isinstance(value, enum.Enum) or type(value).__name__ in ("DALIDataType", "DALIImageType"):
        return f"{type(value).__name__}.{value.name}"
    if type(value).__name__.startswith("TensorList"):
        samples = [plain(np.asarray(value.at(i))) for i in range(len(value))]
        return ("batch", str(value.layout() or ""), samples)
    if type(value).__name__ == "TensorCPU":
        return ("tensor", str(value.layout() or ""), plain(np.asarray(value)))
    if isinstance(value, (np.ndarray, np.generic)):
        return (str(value.dtype), value.shape, plain(value.tolist()))
    if isinstance(value, dict):
        return {k: plain(v) for k, v in value.items()}
    if isinstance(value, (list, tuple)):
        return type(value)(plain(v) for v in value)
    if isinstance(value, float):
        return "nan" if math.isnan(value) else float(f"{value:.6g}")
    return value


def builtin_class(error: BaseException) -> type[BaseException]:
    """The builtin class of `error`, the nearest one above its own."""
    return next(c for c in type(error).__mro__ if getattr(builtins, c.__name__, None) is c)


def attempt(function: Callable[..., Any], *args: Any, **keywords: Any) -> Any:
    """The result of a call, or the error it raised: for scenarios that go on after it."""
    try:
        return function(*args, **keywords)
    except Exception as error:
        return error


_UNLIKE = re.compile("^This epoch is empty|___pyct_anno")
"""Warnings that one library alone has: that an epoch is empty, as an iterable is at its end,
Headrace tells; Python 3.13 tells DALI that its way to rewrite functions will end."""


def outcome(library: Library, scenario: Callable[[Library], Any]) -> Outcome:
    """What comes of `scenario` in one library."""
    text = io.StringIO()
    hook = sys.unraisablehook
    if library is DALI:  # its half-made pipelines complain when they are deleted
        sys.unraisablehook = lambda unraisable: None
    try:
        with warnings.catch_warnings(record=True) as caught, contextlib.redirect_stdout(text):
            warnings.simplefilter("always")
            try:
                result = Outcome(plain(scenario(library)))
            except Exception as error:
                result = Outcome(error=error)
                if library is DALI:
                    traceback.clear_frames(error.__traceback__)
    finally:
        sys.unraisablehook = hook
    result.warned = tuple(w.category for w in caught if not _UNLIKE.search(str(w.message)))
    result.printed = bool(text.getvalue())
    return result


def assert_same(scenario: Callable[[Library], Any]) -> None:
    """Check that a user of Headrace sees what a user of DALI sees.

    Texts of errors and of warnings may differ. A warning may be of a narrower class, and where
    DALI prints one to the standard output, Headrace may warn.
    """
    theirs, ours = outcome(DALI, scenario), outcome(HEADRACE, scenario)
    both = f"\n  DALI: {theirs}\n  Headrace: {ours}"
    if theirs.error is not None:
        assert ours.error is not None, f"Headrace raises nothing{both}"
        reason = _why_unlike(ours.error, theirs.error)
        assert not reason, f"{reason}{both}"
        return
    assert ours.error is None, f"Headrace raises{both}"
    _check_equal(ours.value, theirs.value, both)
    if theirs.warned:
        assert any(issubclass(c, theirs.warned[0]) for c in ours.warned), f"no warning{both}"
    else:
        assert theirs.printed or not ours.warned, f"Headrace warns{both}"


def _check_equal(ours: Any, theirs: Any, both: str) -> None:
    if isinstance(theirs, BaseException) and isinstance(ours, BaseException):
        reason = _why_unlike(ours, theirs)
        assert not reason, f"{reason}{both}"
    elif isinstance(theirs, (list, tuple)):
        assert type(ours) is type(theirs), f"values differ{both}"
        assert len(ours) == len(theirs), f"values differ{both}"
        for mine, other in zip(ours, theirs, strict=True):
            _check_equal(mine, other, both)
    else:
        assert ours == theirs, f"values differ{both}"


def _why_unlike(ours: BaseException, theirs: BaseException) -> str:
    """Why a user could not handle `ours` as they handle `theirs`; empty if they can."""
    wanted = builtin_class(theirs)
    if not isinstance(ours, wanted):
        return f"Headrace's error is no {wanted.__name__}"
    if isinstance(ours, (StopIteration, headrace.errors.HeadraceError)):
        return ""
    if isinstance(ours, AttributeError) or str(ours) == str(theirs):
        return ""  # names that are not there, and what user functions raise, are Python's own
    # Calls that do not fit a signature are refused by Python itself, at the caller's line.
    innermost = traceback.extract_tb(ours.__traceback__)[-1].filename
    return "an error of none of Headrace's classes" if innermost.startswith(own_folders()) else ""


def assert_differs(scenario: Callable[[Library], Any], theirs: Any, ours: Any) -> None:
    """Pin a deliberate difference: each library does what is given, a value or an error class."""
    for library, wanted in ((DALI, theirs), (HEADRACE, ours)):
        found = outcome(library, scenario)
        if isinstance(wanted, type) and issubclass(wanted, BaseException):
            assert isinstance(found.error, wanted), f"{library.name}: {found}"
        else:
            assert found.error is None, f"{library.name}: {found}"
            assert found.value == plain(wanted), f"{library.name}: {found}"


class Table(dict[str, Callable[[Library], Any]]):
    """Scenarios by name: ``@table`` adds a function, ``table(name=lambda lib: ...)`` many."""

    def __call__(self, function: Any = None, /, **rows: Any) -> Any:
        """Add rows."""
        added = dict(rows) if function is None else {function.__name__: function}
        clash = added.keys() & self.keys()
        assert not clash, f"two scenarios are named {sorted(clash)}"
        self.update(added)
        return function
