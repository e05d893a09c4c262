"""Errors of graphs and of captured loops have the words that programs search DALI's for."""

from __future__ import annotations

import importlib
import warnings
from typing import Any

import numpy as np
import pytest

from tests.parity.outcomes import DALI, HEADRACE, Library
from tests.parity.words import Rows, check_words, conditional, of


def gpu_condition(lib: Library) -> Any:
    def definition() -> Any:
        if lib.fn.random.coin_flip(dtype=lib.types.BOOL).gpu() | False:
            return np.array(1)
        return np.array(2)

    return conditional(lib, definition)


def stolen_operator(lib: Library) -> Any:
    one, other = lib.Pipeline(1, 1, None), lib.Pipeline(1, 1, None)
    with one:
        node = lib.fn.external_source(source=[1], batch=False) + 1
        one.set_outputs(node)
    with other:
        other.set_outputs(node + lib.fn.external_source(source=[1], batch=False))
    other.build()


def rewritten_source(lib: Library) -> Any:
    def definition() -> Any:
        def source(info: Any) -> Any:
            return np.array(1)

        return lib.fn.external_source(source=source, parallel=True, batch=False)

    return conditional(lib, definition)


def dynamic(lib: Library) -> Any:
    return importlib.import_module(f"{lib.module.__name__}.experimental.dynamic")


def of_another_size(lib: Library) -> None:
    ndd = dynamic(lib)
    source = ndd.ExternalSource([ndd.batch([[1], [2]])] * 3)
    for step, data in enumerate(source.captured(batch_size=2)):
        ndd.cast(data, dtype=ndd.float32, batch_size=3 if step else None)


GRAPHS: Rows = [
    (gpu_condition, "invalid device \"gpu\" for argument 'predicate' of operator '"),
    (gpu_condition, "fn._conditional.split'."),
    (
        of(lambda lib: lib.fn.random.coin_flip(probability=lib.fn.copy(1.0).gpu() + 0)),
        "invalid device \"gpu\" for argument 'probability' of operator '",
    ),
    (
        stolen_operator,
        "the pipeline is invalid because it contains operators with non-unique names",
    ),
    (rewritten_source, "it must remain unconverted"),
    (of_another_size, "cannot change batch size"),
    (
        of(lambda lib: lib.fn.external_source(lambda: [1], parallel=True), py_num_workers=1),
        "got a callable that does not accept arguments instead.",
    ),
    (lambda lib: dynamic(lib)._ops.Flip(device="invalid"), "invalid device type"),
    (lambda lib: dynamic(lib)._ops.Flip(device="gpu:999"), "invalid device id"),
    (lambda lib: dynamic(lib).readers.File(files=["a"], device="invalid"), "invalid device type"),
]


def test_both_say_it():
    check_words(GRAPHS)


@pytest.mark.parametrize("expression", ["not", "and", "or"])
def test_operands_on_the_gpu_are_told_like_others(expression):
    def definition():
        data = HEADRACE.fn.random.coin_flip(dtype=HEADRACE.types.BOOL).gpu()
        return {
            "not": lambda: not data,
            "and": lambda: data and data,
            "or": lambda: data or data,
        }[expression]()

    with pytest.raises(RuntimeError, match=rf"Logical expression `{expression}` is restricted to"):
        conditional(HEADRACE, definition)


@pytest.mark.parametrize("calls", ["10101", "10000", "00111"])
def test_steps_without_calls_between_others(calls):
    told = []
    for lib in (DALI, HEADRACE):
        ndd = dynamic(lib)
        source = ndd.ExternalSource([ndd.batch([[k], [k]]) for k in range(5)])
        found = []
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            for step, data in enumerate(source.captured(batch_size=2)):
                if calls[step] == "1":
                    cast = ndd.cast(data, dtype=ndd.float32)
                    found.append(np.asarray(ndd.as_tensor(cast)).tolist())
        told.append((found, ["no operators were captured" in str(w.message) for w in caught]))
    assert told[0] == told[1]
