"""Running a pipeline: order, prefetch, the end of data, feeding, the rules of the three ways to
run.
"""

from __future__ import annotations

import gc
import threading
import weakref

import numpy as np
import pytest

import tests.support.counting_reader
from headrace import Pipeline, errors, fn, pipeline_def, types

assert tests.support.counting_reader


@pipeline_def(batch_size=3, num_threads=2, device_id=None, seed=5)
def numbers(count=10):
    return fn.testing.counting_reader(count=count, name="reader")


def values(outputs):
    return outputs[0].as_array().tolist()


def test_batches_come_in_order():
    pipe = numbers()
    assert [values(pipe.run()) for _ in range(4)] == [[0, 1, 2], [3, 4, 5], [6, 7, 8], [9, 0, 1]]


def test_outputs_stay_valid():
    pipe = numbers()
    kept = [pipe.run() for _ in range(6)]
    assert [values(k)[0] for k in kept] == [0, 3, 6, 9, 2, 5]


@pytest.mark.parametrize("depth", [1, 2, 5])
def test_schedule_and_share(depth):
    pipe = numbers(prefetch_queue_depth=depth)
    assert pipe.empty()
    pipe.schedule_run()
    assert not pipe.empty()
    got = [values(pipe.share_outputs()) for _ in range(depth)]
    assert got == [[3 * k % 10, (3 * k + 1) % 10, (3 * k + 2) % 10] for k in range(depth)]
    with pytest.raises(StopIteration):
        pipe.share_outputs()
    pipe.release_outputs()
    pipe.schedule_run()
    assert values(pipe.outputs()) == [3 * depth % 10, (3 * depth + 1) % 10, (3 * depth + 2) % 10]


def test_outputs_without_schedule():
    with pytest.raises(StopIteration):
        numbers().outputs()


def test_ways_of_running_do_not_mix():
    pipe = numbers()
    pipe.run()
    with pytest.raises(RuntimeError, match="Mixing pipeline API"):
        pipe.schedule_run()
    pipe.enable_api_check(False)
    pipe.schedule_run()


@pytest.mark.parametrize("source", [list, iter])
def test_end_of_an_iterable(source):
    @pipeline_def(batch_size=2, num_threads=1)
    def p():
        batches = [np.full((2, 1), k, np.int32) for k in range(3)]
        return fn.external_source(source=source(batches))

    pipe = p()
    assert [values(pipe.run())[0] for _ in range(3)] == [[0], [1], [2]]
    for _ in range(2):
        with pytest.raises(StopIteration):
            pipe.run()
    pipe.reset()
    empty = r'This epoch is empty.*test_running.py.*`cycle="raise"`'
    with pytest.warns(UserWarning, match=empty), pytest.raises(StopIteration):
        pipe.run()  # what has come to its end without `cycle` stays there


def test_an_empty_epoch_that_is_meant():
    @pipeline_def(batch_size=2, num_threads=1)
    def p():
        return fn.external_source(source=[np.zeros((2, 1))], cycle="no")

    pipe = p()
    pipe.run()
    for _ in range(2):
        with pytest.raises(StopIteration):  # without a warning
            pipe.run()
        pipe.reset()


@pytest.mark.parametrize(("cycle", "expected"), [("quiet", [0, 1, 0, 1]), (True, [0, 1, 0, 1])])
def test_quiet_cycle(cycle, expected):
    @pipeline_def(batch_size=1, num_threads=1)
    def p():
        return fn.external_source(source=[np.array([k]) for k in range(2)], cycle=cycle)

    pipe = p()
    assert [values(pipe.run())[0] for _ in range(4)] == expected


def test_raising_cycle_starts_over_after_reset():
    @pipeline_def(batch_size=1, num_threads=1)
    def p():
        return fn.external_source(source=[np.array([k]) for k in range(2)], cycle="raise")

    pipe = p()
    for _ in range(2):
        assert [values(pipe.run())[0] for _ in range(2)] == [0, 1]
        for _ in range(2):
            with pytest.raises(StopIteration):
                pipe.run()
        pipe.reset()


def test_quiet_cycle_wraps_inside_a_batch_of_samples():
    @pipeline_def(batch_size=2, num_threads=1)
    def p():
        samples = [np.array(k) for k in range(3)]
        return fn.external_source(source=samples, batch=False, cycle="quiet")

    pipe = p()
    assert [values(pipe.run()) for _ in range(3)] == [[0, 1], [2, 0], [1, 2]]


def test_positions_given_to_callables():
    seen = []

    def by_batch(index):
        seen.append(index)
        if index == 2:
            raise StopIteration
        return np.array([index])

    @pipeline_def(batch_size=1, num_threads=1)
    def p():
        return fn.external_source(source=by_batch)

    pipe = p()
    for _ in range(2):
        pipe.run(), pipe.run()
        with pytest.raises(StopIteration):
            pipe.run()
        pipe.reset()
    assert seen == [0, 1, 2, 0, 1, 2]


def test_sample_and_batch_info():
    samples, batches = [], []

    def sample(info):
        samples.append((info.idx_in_epoch, info.idx_in_batch, info.iteration, info.epoch_idx))
        return np.array(1)

    def batch(info):
        batches.append((info.iteration, info.epoch_idx))
        return np.array([1, 2])

    @pipeline_def(batch_size=2, num_threads=1, prefetch_queue_depth=1)
    def p():
        return fn.external_source(source=sample, batch=False), fn.external_source(
            source=batch, batch_info=True
        )

    pipe = p()
    pipe.run(), pipe.run()
    assert samples == [(0, 0, 0, 0), (1, 1, 0, 0), (2, 0, 1, 0), (3, 1, 1, 0)]
    assert batches == [(0, 0), (1, 0)]


def test_several_outputs_of_a_source():
    @pipeline_def(batch_size=2, num_threads=1)
    def p():
        a, b = fn.external_source(
            source=lambda: ([np.zeros((4, 4)), np.ones((2, 3))], np.array([[1, 2], [3, 4]])),
            num_outputs=2,
            layout=["HW", "C"],
            dtype=[types.FLOAT64, types.INT64],
        )
        return a, b

    a, b = p().run()
    assert a.shape() == [(4, 4), (2, 3)]
    assert (a.layout(), b.layout()) == ("HW", "C")
    assert b.as_array().tolist() == [[1, 2], [3, 4]]


def test_the_source_may_reuse_its_buffer():
    buffer = np.zeros((1, 2), np.int32)

    def fill(index):
        buffer[:] = index
        return buffer

    @pipeline_def(batch_size=1, num_threads=1)
    def p():
        return fn.external_source(source=fill)

    pipe = p()
    assert [values(pipe.run())[0][0] for _ in range(3)] == [0, 1, 2]


def test_error_in_a_callback_passes_and_is_retried():
    calls = []

    def source(index):
        calls.append(index)
        if len(calls) == 2:
            raise OSError("no luck")
        return np.array([index])

    @pipeline_def(batch_size=1, num_threads=1, prefetch_queue_depth=1)
    def p():
        return fn.external_source(source=source)

    pipe = p()
    assert values(pipe.run()) == [0]
    with pytest.raises(OSError, match="no luck"):
        pipe.run()
    assert values(pipe.run()) == [1]
    assert calls == [0, 1, 1]


def test_keyboard_interrupt_in_a_callback_loses_nothing():
    fail = [True]

    def source(index):
        if index == 3 and fail.pop() if fail else False:
            raise KeyboardInterrupt
        return np.array([index])

    @pipeline_def(batch_size=1, num_threads=2)
    def p():
        return fn.external_source(source=source)

    pipe, got = p(), []
    while len(got) < 6:
        try:
            got += values(pipe.run())
        except KeyboardInterrupt:
            got.append("interrupted")
    assert [g for g in got if g != "interrupted"] == [0, 1, 2, 3, 4]


def test_feeding_one_batch_for_each_run():
    pipe = Pipeline(batch_size=4, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.external_source(name="x"))
    for k in range(4):
        pipe.feed_input("x", np.full((2, 1), k, np.uint8))
        assert values(pipe.run()) == [[k], [k]]
    with pytest.raises(IndexError, match="feed_input"):
        pipe.run()
    assert values(pipe.run(x=np.zeros((3, 1), np.uint8))) == [[0], [0], [0]]


def test_run_with_named_inputs():
    pipe = Pipeline(batch_size=4, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(fn.external_source(name="x"))
    assert values(pipe.run(x=[np.array(1), np.array(2)])) == [1, 2]
    with pytest.raises(KeyError, match='"y"'):
        pipe.run(y=np.zeros(3))
    with pytest.raises(ValueError, match="batch_size <= 4, actual: 5"):
        pipe.run(x=np.zeros(5, np.int64))


@pytest.mark.parametrize(
    ("batches", "error", "match"),
    [
        (
            [np.zeros((1, 2), np.uint8), np.zeros((1, 2), np.float32)],
            TypeError,
            "iteration was uint8 and",
        ),
        ([np.zeros((1, 2)), np.zeros((1, 2, 2))], ValueError, "iteration was 1 and"),
        ([[np.zeros(2), np.zeros((2, 2))]], ValueError, "Sample 1 has 2 dimensions"),
        ([[np.zeros(2), np.zeros(2, np.int8)]], TypeError, "Sample 1 has elements of type int8"),
        ([np.zeros((1, 2), complex)], TypeError, "complex128"),
        ([np.array(3)], IndexError, "outermost"),
        ([[]], ValueError, "empty batch"),
        ([None], TypeError, "None"),
    ],
)
def test_bad_external_data(batches, error, match):
    @pipeline_def(batch_size=4, num_threads=1, prefetch_queue_depth=1)
    def p():
        return fn.external_source(source=batches)

    pipe = p()
    for _ in batches[1:]:
        pipe.run()
    with pytest.raises(error, match=match) as caught:
        pipe.run()
    assert isinstance(caught.value, errors.HeadraceError)
    assert any("test_running.py" in note for note in caught.value.__notes__)


def test_big_endian_and_strided_data():
    data = np.arange(12, dtype=">i4").reshape(3, 4)[:, ::2]

    @pipeline_def(batch_size=3, num_threads=1)
    def p():
        return fn.external_source(source=lambda: data)

    assert values(p().run()) == data.tolist()


@pytest.mark.parametrize(
    ("source", "match"),
    [(3, "callable, iterable"), (lambda a, b: 0, "position"), (lambda *a: 0, "position")],
    ids=["a number", "two parameters", "any number of parameters"],
)
def test_bad_sources(source, match):
    with Pipeline(batch_size=1, num_threads=1), pytest.raises(TypeError, match=match):
        fn.external_source(source=source)


def test_clash_of_batch_sizes():
    @pipeline_def(batch_size=4, num_threads=1)
    def p():
        return fn.external_source(source=lambda: np.zeros(2)), fn.external_source(
            source=lambda: np.zeros(3)
        )

    with pytest.raises(ValueError, match="Batch size clash"):
        p().run()


def test_buffers_return_when_the_last_user_lets_go():
    pipe = numbers()
    array = pipe.run()[0].as_array()
    view = array[1:]
    alive = weakref.ref(array)
    del array
    for _ in range(5):
        pipe.run()
    gc.collect()
    assert view.tolist() == [1, 2]
    assert alive() is None or alive().tolist() == [0, 1, 2]


def test_shutdown_leaves_no_thread():
    before = set(threading.enumerate())
    pipe = numbers(num_threads=3)
    pipe.run()
    assert len(set(threading.enumerate()) - before) == 3
    del pipe
    gc.collect()
    assert set(threading.enumerate()) == before


def test_demands_on_outputs():
    pipe = numbers(output_dtype=types.FLOAT)
    with pytest.raises(TypeError, match=r"output_idx=0 does not match. Expected: FLOAT"):
        pipe.run()
    with pytest.raises(ValueError, match="dimensions in the output_idx=0"):
        numbers(output_ndim=[2]).run()
    with pytest.raises(RuntimeError, match="Lengths"):
        numbers(output_dtype=[None, None]).build()
    assert numbers(output_dtype=(types.INT32,)).output_dtype() == [types.INT32]
    numbers(output_dtype=types.INT32, output_ndim=0).run()


@pytest.mark.parametrize(
    ("keywords", "error"),
    [
        ({"batch_size": 0}, ValueError),
        ({"batch_size": -3}, ValueError),
        ({"batch_size": 2**31}, OverflowError),
        ({"num_threads": 2**31}, OverflowError),
        ({"prefetch_queue_depth": 0}, ValueError),
        ({"prefetch_queue_depth": 1.5}, TypeError),
        ({"prefetch_queue_depth": {"cpu": 1}}, ValueError),
        ({"device_id": 1000}, (errors.GpuNotAvailableError, errors.ArgumentValueError)),
        ({"on_bad_sample": "ignore"}, ValueError),
        ({"seed": 1.5}, TypeError),
        ({"output_dtype": types.NO_TYPE}, ValueError),
    ],
)
def test_bad_settings(keywords, error):
    with pytest.raises(error) as caught:
        numbers(**keywords).build()
    assert isinstance(caught.value, errors.HeadraceError)
    assert next(iter(keywords)).split("_")[0] in str(caught.value)


def test_threads_default_to_the_processors():
    pipe = Pipeline(batch_size=1)
    with pipe:
        pipe.set_outputs(fn.random.uniform())
    pipe.build()
    assert pipe.num_threads >= 1


def test_reader_meta():
    pipe = numbers()
    assert pipe.epoch_size("reader") == 10
    assert pipe.epoch_size() == {"reader": 10}
    assert pipe.reader_meta("reader")["number_of_shards"] == 1
    with pytest.raises(RuntimeError, match="reader"):
        pipe.reader_meta("other")


@pytest.mark.parametrize("consumed", [0, 1, 2, 5])
def test_restart_in_the_middle_of_an_epoch(consumed):
    pipe = numbers(prefetch_queue_depth=3)
    for _ in range(consumed):
        pipe.run()
    pipe._restart_epoch()
    assert values(pipe.run()) == [0, 1, 2]


def test_random_numbers_do_not_depend_on_how_the_pipeline_runs():
    @pipeline_def(batch_size=4, seed=3)
    def p():
        return fn.random.uniform(range=[0, 1]), fn.random.normal(shape=[2])

    runs = []
    for threads, depth in ((1, 1), (4, 3)):
        pipe = p(num_threads=threads, prefetch_queue_depth=depth)
        runs.append([[np.array(o.as_array()) for o in pipe.run()] for _ in range(5)])
    for one, other in zip(*runs, strict=True):
        for a, b in zip(one, other, strict=True):
            np.testing.assert_array_equal(a, b)


def test_without_asynchronous_execution_calls_wait():
    """Nothing is at work when `schedule_run` or `run` returns; a failed batch is done, too."""
    done = []

    def slow(x):
        done.append(threading.get_ident())
        if len(done) == 3:
            raise LookupError("the third")
        return x

    pipe = Pipeline(1, 2, None, exec_async=False, prefetch_queue_depth=2)
    with pipe:
        found = fn.external_source(lambda k: np.full((1, 1), k))
        pipe.set_outputs(fn.python_function(found, function=slow))
    pipe.build()
    for count in (2, 3, 4, 5):
        pipe.schedule_run()
        assert len(done) == count
        if count == 4:
            with pytest.raises(LookupError, match="the third"):
                pipe.share_outputs()
        else:
            pipe.share_outputs()
        pipe.release_outputs()
    pipe = Pipeline(1, 2, None, exec_async=False, exec_pipelined=False)
    with pipe:
        pipe.set_outputs(fn.python_function(np.zeros(1), function=slow))
    for count in (6, 7):
        pipe.run()
        assert len(done) == count


def test_deprecated_names_are_told_at_the_line_that_uses_them(tmp_path):
    pipe = numbers()
    with pytest.warns(DeprecationWarning, match="max_batch_size") as told:
        assert pipe.batch_size == 3
    with pytest.warns(DeprecationWarning, match="show_ids") as also:
        pipe.save_graph_to_dot_file(tmp_path / "graph.dot", show_ids=True)
    assert told[0].filename == also[0].filename == __file__


def test_what_is_fed_is_asked_for_by_its_name():
    pipe = Pipeline(batch_size=3, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(fn.external_source(name="x", dtype=types.FLOAT, ndim=1))
    for data, way in (
        (None, '"x"; `feed_input` takes'),
        (np.zeros((3, 2)), "give another `dtype`"),
        (np.zeros((3, 2, 2), np.float32), "`ndim` counts the axes of one sample"),
    ):
        with pytest.raises((TypeError, ValueError), match=way):
            pipe.feed_input("x", data)
