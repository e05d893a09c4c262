"""Errors say where they happened and stay what they are."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, errors, fn
from headrace.errors import ErrorLocation, OperatorError, located

HERE = ErrorLocation("fn.x", sample=3)


@pytest.mark.parametrize(
    "error",
    [KeyError("one\ntwo"), ValueError("one\ntwo"), errors.UnknownNameError("one\ntwo")],
    ids=lambda error: type(error).__name__,
)
def test_a_located_error_keeps_its_class_and_text(error):
    found = located(error, HERE)
    assert isinstance(found, OperatorError)
    assert isinstance(found, type(error))
    assert "one\ntwo" in str(found)
    assert str(found).endswith("in operator `fn.x`, at sample 3 of the batch")


def test_memory_that_cannot_be_had():
    # NumPy's own class formats attributes that only its constructor sets.
    with pytest.raises(MemoryError) as caught:
        np.empty(1 << 60, np.uint8)
    found = located(caught.value, HERE)
    assert isinstance(found, MemoryError)
    assert "allocate" in str(found)


def built_with_crop(pipe, arguments):
    with pipe:
        pipe.set_outputs(fn.crop(np.ones((3, 3, 1), np.uint8), **arguments))
    pipe.build()


@pytest.mark.parametrize(
    ("arguments", "classes"),
    [
        ({"rounding": "up"}, (ValueError, RuntimeError)),
        ({"dtype": 1 << 40}, (ValueError, TypeError)),
        ({"crop_h": "three"}, (ValueError, TypeError)),
    ],
)
def test_classes_of_refused_constants(arguments, classes):
    for kind in (*classes, errors.HeadraceError):
        pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
        with pytest.raises(kind, match=next(iter(arguments))):
            built_with_crop(pipe, arguments)


@pytest.mark.parametrize(
    ("name", "meant"),
    [
        ("num_thread", ' Did you mean "num_threads"?'),
        ("NUM_THREADS", ' Did you mean "num_threads"?'),
        ("colour", ""),
    ],
)
def test_what_was_meant(name, meant):
    assert errors.did_you_mean(name, ["num_threads", "batch_size"]) == meant


@pytest.mark.parametrize(
    ("module", "name", "meant"),
    [
        ("errors", "DataTypError", "DataTypeError"),
        ("math", "sqrtt", "sqrt"),
        ("backend", "GetScheme", "GetSchema"),
        ("tfrecord", "FixedLenFeatur", "FixedLenFeature"),
    ],
)
def test_misspelt_names_of_modules(module, name, meant):
    with pytest.raises(ImportError, match=rf'{name}.*headrace\.{module}.*"{meant}"'):
        exec(f"from headrace.{module} import {name}")
