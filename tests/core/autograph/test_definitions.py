"""Definitions of pipelines with conditions: where nodes and errors say they come from."""

from __future__ import annotations

import inspect
import traceback

import numpy as np
import pytest

from headrace import Pipeline, errors, fn, pipeline_def, types

SETTINGS = {"batch_size": 4, "num_threads": 1, "device_id": None, "enable_conditionals": True}


def numbers():
    return fn.external_source(lambda: [np.int32(k) for k in range(4)])


def line_of(text):
    lines = inspect.getsource(inspect.getmodule(line_of)).splitlines()
    return next(k for k, line in enumerate(lines, 1) if line.endswith(f"# {text}"))


def crops(image, number):
    if number > 1:
        image = fn.crop(image, crop_w=9.0, crop_h=1)  # fails
    return image


def test_errors_when_it_runs_name_the_user_s_lines():
    @pipeline_def(**SETTINGS)
    def define():
        image = fn.reshape(fn.full(1, shape=[2, 2, 1]), layout="HWC")
        return crops(image, numbers())  # calls

    with pytest.raises(errors.OperatorError) as caught:
        define().run()
    message = str(caught.value)
    assert f"created at {__file__}:{line_of('fails')} in crops" in message
    assert f"{__file__}:{line_of('calls')} in define" in message
    assert "sample 2" in message


def test_errors_in_the_definition_show_the_user_s_frames():
    @pipeline_def(**SETTINGS)
    def define():
        if numbers() > 1:
            return helper(1)  # calls the helper
        return 1

    def helper(x):
        return fn.full(1, shpe=[x])  # misspelt

    with pytest.raises(errors.UnknownArgumentError) as caught:
        define()
    frames = traceback.extract_tb(caught.value.__traceback__)
    assert {frame.filename for frame in frames} == {__file__}
    found = [frame.lineno for frame in frames]
    assert line_of("calls the helper") in found
    assert line_of("misspelt") in found


def test_types_that_differ_name_the_variable_and_both_lines():
    @pipeline_def(**SETTINGS)
    def define():
        x = numbers()
        if x > 1:
            y = fn.cast(x, dtype=types.FLOAT)  # one
        else:
            y = x + 1  # other
        return y

    with pytest.raises(errors.DataTypeError) as caught:
        define().run()
    for part in ("'y'", f":{line_of('one')} in define", f":{line_of('other')} in define"):
        assert part in str(caught.value)


def test_an_error_in_a_definition_leaves_nothing_behind():
    @pipeline_def(**SETTINGS)
    def fails():
        return numbers() > 1 and (1 / 0 if numbers() > 2 else True)

    @pipeline_def(**SETTINGS)
    def works():
        return numbers() > 1

    with pytest.raises(ZeroDivisionError):
        fails()
    (found,) = works().run()
    assert len(found) == 4


def test_code_without_conditions_is_converted_at_the_call_only():
    calls = []

    @pipeline_def(**SETTINGS)
    def define(flag):
        if flag:
            calls.append(Pipeline.current())
        return numbers()

    pipe = define(True)
    assert calls == [pipe]
    define(False)
    assert len(calls) == 1
