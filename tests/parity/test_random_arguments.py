"""Every operator with arguments, types, layouts and shapes drawn at random, against DALI.

Where DALI accepts them, values are the same within rounding; where it refuses them, so does
Headrace. A nightly run draws more, `HEADRACE_RANDOM_CASES` of them.
"""

from __future__ import annotations

import os
import warnings
import zlib

import pytest

import headrace
from headrace import types
from tests.parity.support import compare_outputs, run_graph
from tests.support.random_cases import GENERATORS, PerSample, draw

COUNT = int(os.environ.get("HEADRACE_RANDOM_CASES", "50"))
COUNTS = [12, pytest.param(COUNT, marks=pytest.mark.nightly)]


def _returning(rows):
    return lambda: rows


def _graph(case):
    def graph(lib, data):
        args = {}
        for name, value in case.args.items():
            if isinstance(value, PerSample):
                args[name] = lib.fn.external_source(source=_returning(value.rows))
            elif type(value).__name__.startswith("DALI"):
                args[name] = getattr(lib.types, type(value).__name__)(int(value))
            else:
                args[name] = value
        return getattr(lib.fn, case.name)(data, **args)

    return graph


@pytest.mark.sweep
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("name", GENERATORS)
def test_as_in_dali(name, count):
    accepted = 0
    for number in range(count):
        case = draw(name, zlib.crc32(name.encode()), number)
        try:
            expected = run_graph("dali", _graph(case), case.data, layouts=case.layout)
        except Exception:
            with pytest.raises(headrace.errors.HeadraceError):
                run_graph("headrace", _graph(case), case.data, layouts=case.layout)
            continue
        accepted += 1
        shapes = [(v.shape, v.dtype.name) for v in case.data]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            actual = run_graph("headrace", _graph(case), case.data, layouts=case.layout)
        try:
            # DALI rounds what is halfway between two numbers of float16 away from zero.
            halves = any(o.dtype == types.FLOAT16 for outputs in expected for o in outputs)
            relative = 1e-3 if halves else 2e-4
            compare_outputs(expected, actual, differing=1.0, relative=relative, absolute=1e-4)
        except AssertionError as error:
            error.add_note(f"case {number}: fn.{name}({case.args}) of {shapes} {case.layout!r}")
            raise
    assert accepted > count // 2
