"""What a traceback shows: the user's lines, and not those of the library between them."""

from __future__ import annotations

import importlib
import traceback
from collections import deque
from pathlib import Path

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, errors, fn, ops, pipeline_def
from headrace.operators import Input, operator
from headrace.tracebacks import own_folders

HERE = str(Path(__file__))
IMAGES = [np.zeros((20, 30, 3), np.uint8)] * 4


def shown(error: BaseException) -> str:
    return "".join(traceback.format_exception(error))


def files_of(text: str) -> list[str]:
    return [line.split('"')[1] for line in text.splitlines() if line.startswith('  File "')]


def check_hidden(text: str) -> None:
    """No line of the library is shown, and at least one of this file."""
    files = files_of(text)
    assert HERE in files
    assert not [f for f in files if f.startswith(own_folders())], text


def raised_by(call) -> str:
    with pytest.raises(Exception) as caught:
        call()
    return shown(caught.value)


def crop(images):
    return fn.crop(images, crop=(33, 4))  # where it is created


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def cropped():
    images = fn.external_source(source=lambda: IMAGES, layout="HWC")
    return crop(images)  # where that is called


def iterator_of(plugin):
    module = importlib.import_module(f"headrace.plugin.{plugin}")
    return module.DALIGenericIterator(cropped(), ["images"])


def dynamic(mode):
    with mode:
        cut = ndd.crop(ndd.batch(IMAGES, layout="HWC"), crop=(33, 4))
        return ndd.flip(cut).evaluate()


OPERATOR_ERRORS = {
    "run": lambda: cropped().run(),
    "share_outputs": lambda: (pipe := cropped(), pipe.schedule_run(), pipe.share_outputs()),
    "pytorch": lambda: iterator_of("pytorch"),
    "jax": lambda: iterator_of("jax"),
    "dynamic, eager": lambda: dynamic(ndd.EvalMode.eager),
    "dynamic, deferred": lambda: dynamic(ndd.EvalMode.deferred),
    "dynamic, at once": lambda: dynamic(ndd.EvalMode.sync_cpu),
}


@pytest.mark.parametrize("case", OPERATOR_ERRORS)
def test_an_error_of_an_operator(case, monkeypatch):
    text = raised_by(OPERATOR_ERRORS[case])
    check_hidden(text)
    assert text.count("Make it smaller or choose") == 1
    assert "direct cause" not in text
    assert len(text.splitlines()) <= 20
    monkeypatch.setenv("HEADRACE_FULL_TRACEBACK", "1")
    text = raised_by(OPERATOR_ERRORS[case])
    assert any(f.startswith(own_folders()) for f in files_of(text))
    assert "direct cause" in text
    monkeypatch.setenv("HEADRACE_FULL_TRACEBACK", "perhaps")  # it must not hide the error
    assert "Make it smaller or choose" in raised_by(OPERATOR_ERRORS[case])


def line_of(comment: str) -> int:
    lines = Path(HERE).read_text().splitlines()
    return next(k for k, line in enumerate(lines, 1) if line.endswith(f"# {comment}"))


def test_the_whole_stack_at_the_creation_of_an_operator():
    text = raised_by(lambda: cropped().run())
    inner, outer = (line_of(f"where {what}") for what in ("it is created", "that is called"))
    lines = text.splitlines()
    (at,) = [k for k, line in enumerate(lines) if f"created at {HERE}:{inner} in crop" in line]
    assert lines[at + 1 :] == [f"    called from {HERE}:{outer} in cropped"]


def test_the_stack_at_a_call_in_dynamic_mode():
    def cut(images):
        return ndd.crop(images, crop=(33, 4))  # the call

    def prepare():
        return cut(ndd.batch(IMAGES, layout="HWC"))  # the caller

    found = prepare()
    text = raised_by(found.evaluate)
    assert f"created at {HERE}:{line_of('the call')} in cut" in text
    assert f"called from {HERE}:{line_of('the caller')} in prepare" in text


@operator("_look_up", inputs=Input(), hidden=True)
def look_up(xp, number):
    """Fail in a function of its own."""
    return {}[helper(number)]


def helper(number):
    raise LookupError("the data base is away")


@pytest.mark.parametrize(
    "run",
    [
        lambda: failing(lambda: fn._look_up(feed())).run(),
        lambda: ndd._look_up(ndd.tensor([1])).evaluate(),
    ],
    ids=["pipeline", "dynamic"],
)
def test_the_frames_of_a_user_operator_are_shown(run):
    text = raised_by(run)
    check_hidden(text)
    assert "in helper" in text
    assert "in look_up" in text
    # Frames of a worker process are shown as text, which is one more cause.
    assert text.count("direct cause") == 1 + text.count("WorkerTraceback")


def feed():
    return fn.external_source(source=lambda: [np.zeros(1)] * 2)


def failing(graph, **options):
    pipe = Pipeline(2, 1, None, **options)
    with pipe:
        pipe.set_outputs(graph())
    return pipe


def broken(info):
    if info.iteration == 1:
        raise LookupError("the data base is away")
    return np.zeros(3)


def error_of_a_source(**options):
    def graph():
        return fn.external_source(source=broken, batch=False, **options)  # the source

    pipe = failing(graph)
    with pytest.raises(LookupError) as caught:
        deque((pipe.run() for _ in range(3)), maxlen=0)
    return caught.value


@pytest.mark.parametrize("options", [{}, {"parallel": True}], ids=["here", "in a worker"])
def test_an_error_of_a_source_has_its_frames_and_one_note(options):
    error = error_of_a_source(**options)
    text = shown(error)
    assert "in broken" in text
    check_hidden(text)
    (note,) = error.__notes__
    first, second, *_ = note.splitlines()
    assert first.endswith(f"created at {HERE}:{line_of('the source')} in graph")
    assert "called from" in second
    assert "in failing" in second


def test_an_error_raised_again_has_the_note_of_the_last_time():
    error = LookupError("the data base is away")

    def source():
        raise error

    pipe = failing(lambda: fn.external_source(source=source))
    for _ in range(3):
        with pytest.raises(LookupError):
            pipe.run()
    assert len(error.__notes__) == 1


def test_a_mistake_in_the_library_shows_everything(monkeypatch):
    place = f"{own_folders()[0]}engine.py"
    names: dict = {}
    exec(compile("def build(self): return {}['missing']", place, "exec"), names)
    monkeypatch.setattr(Pipeline, "_build", names["build"])
    assert place in files_of(raised_by(lambda: failing(feed).run()))


def test_arguments_that_python_refuses_end_at_the_users_line():
    pipe = failing(feed)
    text = raised_by(lambda: pipe.run(1, 2, 3))
    check_hidden(text)
    assert "TypeError" in text


CALLS = {
    "unknown argument": lambda: failing(lambda: fn.resize(feed(), sizee=3)),
    "argument of another type": lambda: failing(lambda: fn.resize(feed(), size="a")),
    "arithmetic": lambda: failing(lambda: feed() + "a"),
    "index": lambda: failing(lambda: feed()["a"]),
    "class": lambda: ops.Resize(sizee=3),
    "dynamic": lambda: ndd.resize(ndd.tensor(IMAGES[0], layout="HWC"), sizee=3),
    "dynamic arithmetic": lambda: ndd.tensor([1.0]) + "a",
    "unknown function": lambda: fn.no_such_operator,
    "unknown reader": lambda: fn.readers.no_such_operator,
    "unknown class": lambda: ndd.readers.NoSuchReader,
    "setting": lambda: Pipeline(4, on_bad_sample="no"),
    "name of a reader": lambda: failing(feed).reader_meta("nobody"),
}


@pytest.mark.parametrize("case", CALLS)
def test_errors_of_definitions_and_calls(case):
    text = raised_by(CALLS[case])
    check_hidden(text)
    assert "direct cause" not in text


def test_what_was_left_out_is_within_reach():
    with pytest.raises(errors.OperatorError) as caught:
        cropped().run()
    assert caught.value.__cause__ is None
    assert isinstance(caught.value.__context__, errors.OutOfRangeError)
