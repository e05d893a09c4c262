"""Errors of samples are the same, whether threads or worker processes have carried them."""

from __future__ import annotations

import os
import threading

import numpy as np
import pytest

from headrace import fn, pipeline_def
from headrace.errors import OperatorError, ShapeError
from headrace.executor.processes.task_memory import TaskMemory
from headrace.operators import Input, operator
from headrace.tracebacks import WorkerTraceback

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")


class OwnError(ValueError):
    def __init__(self, code, text):
        super().__init__(text)
        self.code = code


class KeptError(LookupError):
    """What it holds cannot be pickled."""

    def __init__(self, text):
        super().__init__(text)
        self.lock = threading.Lock()


class SilentError(Exception):
    def __str__(self):
        raise RuntimeError("no")


def builtin():
    raise KeyError("a key")


def system():
    with open("/nowhere/at all"):
        pass


def decoding():
    b"\xff\xfe".decode("ascii")


def of_the_library():
    raise ShapeError("a shape")


def of_the_user():
    raise OwnError(7, "seven")


def noted():
    error = OwnError(8, "eight")
    error.add_note("a note\nof two lines")
    raise error


def caused():
    try:
        builtin()
    except KeyError as error:
        raise OwnError(9, "nine") from error


def on_the_way():
    try:
        builtin()
    except KeyError:
        raise OwnError(10, "ten")  # noqa: B904 - its context is the case


def hidden():
    try:
        builtin()
    except KeyError:
        raise OwnError(11, "eleven") from None


def several():
    raise ExceptionGroup("two of them", [KeyError("one"), OwnError(12, "twelve")])


def the_end():
    raise StopIteration("no more")


def exits():
    raise SystemExit(3)


def silent():
    raise SilentError


def kept():
    raise KeptError("with a lock")


SAME = (
    *(builtin, system, decoding, of_the_library, of_the_user, noted, caused, on_the_way),
    *(hidden, several, the_end, exits, silent),
)


@pytest.fixture(scope="module")
def raised():
    """Function of functions and `workers` that returns what a pipeline raises for each of them."""

    def found(functions, workers):
        @operator("testing.processes_raise", inputs=Input())
        def raising(xp, number):
            return xp.int32(functions[int(number)]() or 0)

        numbers = iter(range(len(functions)))

        @pipeline_def(batch_size=2, num_threads=2, device_id=None, workers=workers)
        def p():
            x = fn.external_source(lambda: [np.int32(next(numbers))] * 2)
            return fn.testing.processes_raise(x)

        pipe, errors = p(), []
        for _ in functions:
            with pytest.raises(OperatorError) as caught:
                pipe.run()
            errors.append(caught.value)
        assert pipe.executor_statistics()["workers"] == workers
        return errors

    return found


def chain(error):
    """What there is to know of an error and those it came of, without where they are shown."""
    found = []
    while error is not None and not isinstance(error, WorkerTraceback):
        state = {k: v for k, v in vars(error).items() if k != "lock"}
        text = "" if isinstance(error, SilentError) else str(error)
        found.append((type(error), text, state))
        error = error.__cause__ or (None if error.__suppress_context__ else error.__context__)
    return found


def test_errors_are_those_of_threads(raised):
    expected, got = raised(SAME, "threads"), raised(SAME, "processes")
    for function, before, after in zip(SAME, expected, got, strict=True):
        for a, b in zip(chain(before), chain(after), strict=True):
            if "group" in str(a[2]) or isinstance(before, ExceptionGroup):
                a, b = a[:2], b[:2]
            # The traceback of the worker is shown in place of a context.
            assert a == b, function.__name__
        assert after.where.sample in (0, 1)
        last = after
        while not isinstance(last, WorkerTraceback):
            last = last.__cause__ or last.__context__
            assert last is not None, function.__name__
        assert f"in {function.__name__}" in last.text


def test_what_cannot_be_passed_on_keeps_its_class(raised):
    (error,) = raised([kept], "processes")
    assert isinstance(error, KeptError)
    cause = error.__cause__
    assert type(cause) is KeptError
    assert cause.args == ("with a lock",)
    assert "could not pass on its attributes" in cause.__notes__[0]


def test_a_class_that_cannot_be_passed_on_has_a_stand_in(raised):
    def made_in_the_worker():
        kind = type("Held", (OwnError,), {"lock": threading.Lock()})
        error = kind(13, "thirteen")
        error.add_note("its own")
        raise error

    (error,) = raised([made_in_the_worker], "processes")
    assert isinstance(error, OwnError)
    assert "thirteen" in str(error)
    cause = error.__cause__
    assert type(cause) is OwnError
    assert str(cause) == "Held: thirteen"
    assert cause.__notes__[0] == "its own"
    assert "could not be passed on" in cause.__notes__[1]
    assert "`OwnError` stands for it" in cause.__notes__[1]


def test_a_class_of_the_user_that_travels_by_value_returns_as_the_same(raised):
    class LocalError(KeyError):
        def __init__(self, code, text):
            super().__init__(text)
            self.code = code

    def fails():
        raise LocalError(14, "fourteen")

    (error,) = raised([fails], "processes")
    assert isinstance(error, LocalError)
    assert type(error.__cause__) is LocalError
    assert error.__cause__.code == 14


@pytest.mark.parametrize("policy", ["raise", "replace"])
def test_a_sample_that_there_is_no_memory_for(policy):
    """It is that sample's error; the worker goes on, and so does the pipeline."""
    sizes = iter([[4, 5, 6], [4, 10**9, 6], [7, 8, 9]])

    @pipeline_def(
        batch_size=3, num_threads=2, device_id=None, workers="processes", on_bad_sample=policy
    )
    def p():
        images = fn.external_source(lambda: [np.zeros((8, 8, 3), np.uint8)] * 3, layout="HWC")
        extents = fn.external_source(lambda: [np.float32([n, n]) for n in next(sizes)])
        return fn.resize(images, size=extents)

    pipe = p()
    assert [shape[0] for shape in pipe.run()[0].shape()] == [4, 5, 6]
    workers = set(pipe._executor.processes.pids())
    if policy == "raise":
        with pytest.raises(MemoryError, match="1000000000, 1000000000, 3") as caught:
            pipe.run()
        assert isinstance(caught.value, OperatorError)
        assert caught.value.where.sample == 1
    else:
        heights = [shape[0] for shape in pipe.run()[0].shape()]
        assert (heights[0], heights[2]) == (4, 6)
        assert heights[1] in (4, 6)
    assert [shape[0] for shape in pipe.run()[0].shape()] == [7, 8, 9]
    assert workers <= set(pipe._executor.processes.pids())


def test_there_is_room_for_a_sample_where_there_is_none_for_as_many():
    asked = []

    def ask(size):
        asked.append(size)
        if size > 1000:
            raise MemoryError
        return np.empty(size, np.uint8)

    room = TaskMemory(8, None, ask)
    assert room.empty((4, 50), np.float32).shape == (4, 50)
    assert asked == [8 * 800, 800]
    with pytest.raises(MemoryError, match=r"shape \(2000,\) and type uint8.* 2000 bytes"):
        room.empty(2000, np.uint8)
