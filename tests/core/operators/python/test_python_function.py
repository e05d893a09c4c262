"""Functions in Python within pipelines: order, memory, sources, errors, what is counted."""

from __future__ import annotations

import re
import time
import traceback

import numpy as np
import pytest

import tests.support.counting_reader
from headrace import fn, pipeline_def, types
from headrace.errors import OperatorError

assert tests.support.counting_reader

OPTIONS = {"batch_size": 4, "num_threads": 3, "device_id": None, "prefetch_queue_depth": 3}


def pipeline(graph, **options):
    made = pipeline_def(graph, **{**OPTIONS, **options})()
    made.build()
    return made


def numbers(**options):
    return fn.testing.counting_reader(count=1000, name="reader", **options)


def test_calls_come_one_by_one_and_in_order():
    seen, at_work = [], []

    def note(x):
        at_work.append(x)
        assert len(at_work) == 1
        seen.append(int(x))
        at_work.pop()
        return x

    pipe = pipeline(lambda: fn.python_function(fn.copy(numbers()), function=note))
    for k in range(20):
        (found,) = pipe.run()
        assert found.as_array().tolist() == list(range(4 * k, 4 * k + 4))
    assert seen[:80] == list(range(80))


def test_what_a_function_gets_is_its_own():
    kept = []

    def spoil(x):
        x += 1000
        kept.append(x)
        return x

    def graph():
        x = numbers()
        shared, alone = fn.python_function(x, function=spoil), fn.copy(x)
        alone = fn.python_function(alone, function=spoil)
        constant = fn.python_function(types.Constant(np.arange(2)), function=spoil)
        return x, shared, alone, constant

    pipe = pipeline(graph)
    for k in range(6):
        x, shared, alone, constant = [batch.as_array() for batch in pipe.run()]
        expected = np.arange(4 * k, 4 * k + 4)
        assert x.tolist() == expected.tolist()
        assert shared.tolist() == alone.tolist() == (expected + 1000).tolist()
        assert constant.tolist() == [[1000, 1001]] * 4
        shared[:] = -1
        alone[:] = -1
    # What it has kept stays, whatever becomes of the batches.
    scalars = sorted(int(x) for x in kept[:72] if x.ndim == 0)[:8]
    assert scalars == [1000, 1000, 1001, 1001, 1002, 1002, 1003, 1003]


def test_what_a_function_returns_may_change_at_once():
    memory = np.zeros(3, np.int64)

    def reuse(x):
        memory[:] = x
        return memory

    pipe = pipeline(lambda: fn.python_function(numbers(), function=reuse))
    outputs = [pipe.run()[0].as_array()[:, 0].tolist() for _ in range(3)]
    assert outputs == [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11]]


def test_what_follows_takes_ragged_samples_with_their_sources():
    def graph():
        x = numbers()
        rows = fn.python_function(
            x, function=lambda v: np.full((int(v) % 3 + 1, 2), v, np.uint8), output_layouts="HW"
        )
        return (
            x,
            rows,
            fn.crop(fn.expand_dims(rows, axes=2, new_axis_names="C"), crop=(1, 1)),
            fn.cast(rows, dtype=types.FLOAT) + 0.5,
        )

    pipe = pipeline(graph)
    pipe.run()
    x, rows, cropped, moved = pipe.run()
    assert rows.shape() == [(2, 2), (3, 2), (1, 2), (2, 2)]
    assert cropped.as_array().ravel().tolist() == [4, 5, 6, 7]
    assert [t.source_info() for t in rows] == [t.source_info() for t in x]
    assert x[0].source_info()
    assert rows.layout() == "HW"
    assert [np.asarray(t)[0, 0] for t in moved] == [4.5, 5.5, 6.5, 7.5]


def divide(x):
    checked = int(x)
    return np.array(10 // (checked - 6))


def test_errors_name_operator_sample_file_and_both_lines():
    line = divide.__code__.co_firstlineno + 2
    pipe = pipeline(lambda: fn.python_function(numbers(), function=divide, name="divider"))
    pipe.run()
    with pytest.raises(ZeroDivisionError) as raised:
        pipe.run()
    text = str(raised.value)
    assert isinstance(raised.value, OperatorError)
    assert 'in operator `fn.python_function`, named "divider"' in text
    assert re.search(rf"raised at \S*test_python_function.py:{line} in divide", text)
    assert "at sample 2 of the batch" in text
    assert 'read from "' in text
    assert "created at" in text
    # The function's own traceback is there, too, and no frame of the library.
    shown = "".join(traceback.format_exception(raised.value))
    assert "return np.array(10 // (checked - 6))" in shown
    assert "headrace/executor" not in shown


def test_bad_samples_are_replaced():
    seen = []

    def note(x):
        seen.append(int(x))
        return divide(x)

    def graph():
        x = numbers()
        return x, fn.python_function(x, function=note) + 0

    pipe = pipeline(graph, on_bad_sample="replace")
    found = [[batch.as_array().tolist() for batch in pipe.run()] for _ in range(3)]
    assert found[1] == [[4, 5, 5, 7], [-5, -10, -10, 10]]
    assert found[2][0] == [8, 9, 10, 11]
    assert seen[:12] == list(range(12))
    (report,) = pipe.bad_samples
    assert (report.operator, report.index) == ("fn.python_function", 2)
    assert "division" in report.reason


def test_skipping_samples_calls_the_function_again_for_the_batch():
    pipe = pipeline(lambda: fn.python_function(numbers(), function=divide), on_bad_sample="skip")
    assert pipe.run()[0].as_array().tolist() == [10 // (k - 6) for k in range(4)]
    assert pipe.run()[0].as_array().tolist() == [-5, -10, 10 // 2, 10]


def test_statistics_count_the_time_in_functions():
    def work(x):
        began = time.thread_time()
        while time.thread_time() - began < 0.002:
            pass
        return x

    pipe = pipeline(lambda: fn.python_function(numbers(), function=work))
    assert pipe.executor_statistics()["python_function_seconds"] == 0
    pipe.run()
    assert pipe.executor_statistics()["python_function_seconds"] >= 0.008
    without = pipeline(lambda: numbers())
    without.run()
    assert without.executor_statistics()["python_function_seconds"] == 0


@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_results_do_not_depend_on_workers(workers, monkeypatch):
    """Functions may remember things, unless the pipeline itself asks for processes."""
    monkeypatch.setenv("HEADRACE_WORKERS", workers)
    total = 0

    def add_up(x):
        nonlocal total
        total += int(x)
        return np.array([total])

    def graph():
        x = fn.copy(numbers())
        x = fn.python_function(x + 1, function=add_up)
        return x * 2

    pipe = pipeline(graph)
    sums = [2 * v for v in np.cumsum(np.arange(1, 21)).tolist()]
    found = [pipe.run()[0].as_array()[:, 0].tolist() for _ in range(5)]
    assert [v for batch in found for v in batch] == sums


def test_checkpoints():
    """A function's own state is not part of a checkpoint, as in DALI."""

    def graph():
        return fn.python_function(numbers(), function=lambda x: np.array(x * 2))

    pipe = pipeline(graph, enable_checkpointing=True)
    pipe.run()
    saved = pipe.checkpoint()
    expected = pipe.run()[0].as_array().tolist()
    again = pipeline(graph, enable_checkpointing=True, checkpoint=saved)
    assert again.run()[0].as_array().tolist() == expected == [8, 10, 12, 14]


def test_functions_within_definitions_with_conditions():
    """A function keeps its own conditions: they are about arrays, not about edges."""

    def graph():
        x = fn.cast(numbers(), dtype=types.INT32)

        def clip(v):
            if v > 2 and v != 5:
                return np.array(2)
            return np.asarray(v, np.int64)

        return fn.python_function(x, function=clip), fn.python_function(
            x, function=lambda v: np.array(1 if v > 2 and v < 5 else 0)
        )

    pipe = pipeline(graph, enable_conditionals=True)
    pipe.run()
    assert [batch.as_array().tolist() for batch in pipe.run()] == [[2, 5, 2, 2], [1, 0, 0, 0]]


def test_an_unused_function_is_called_and_a_sink_returns_nothing():
    seen = []

    def graph():
        x = numbers()
        assert fn.python_function(x, function=lambda v: seen.append(int(v)), num_outputs=0) == []
        fn.dl_tensor_python_function(x, function=lambda v: seen.append(len(v)), num_outputs=0)
        return x

    pipe = pipeline(graph)
    pipe.run()
    assert sorted(seen[:5]) == [0, 1, 2, 3, 4]
    assert seen[:5] in ([0, 1, 2, 3, 4], [4, 0, 1, 2, 3])
