"""Functions of the user's that worker processes call give what they give in threads."""

from __future__ import annotations

import os
import signal
import threading
import time

import numpy as np
import pytest

from headrace import fn, pipeline_def
from headrace.errors import WorkerProcessError
from tests.support.processes import wait_until

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")

BATCH = 11
HOME = os.getpid()


def built(function, workers="processes", count=1, **options):
    policy = options.pop("on_bad_sample", "raise")

    @pipeline_def(
        batch_size=BATCH,
        num_threads=2,
        device_id=None,
        workers=workers,
        on_bad_sample=policy,
        py_worker_timeout_seconds=options.pop("timeout", 60),
    )
    def p():
        x = fn.external_source(
            lambda info: np.full((info.idx_in_batch % 4, 30, 20), info.idx_in_batch, np.int16),
            batch=False,
        )
        made = fn.python_function(x + 1, function=function, num_outputs=count, **options)
        return tuple(made) if count > 1 else made

    return p()


def found(pipe, iterations=2):
    return [
        (np.array(sample), output.layout())
        for _ in range(iterations)
        for output in pipe.run()
        for sample in output
    ]


def check_same(function, **options):
    expected = found(built(function, "threads", **options))
    pipe = built(function, **options)
    for (a, layout), (b, other) in zip(expected, found(pipe), strict=True):
        np.testing.assert_array_equal(a, b)
        assert (a.dtype, layout) == (b.dtype, other)
    assert pipe.executor_statistics()["functions_not_in_workers"] == {}
    return pipe


def test_for_samples():
    def several(x):
        x += 1  # what it gets is its own
        return x * 2, np.array(x.sum(), np.float32), x[:, ::2, ::-1]

    check_same(several, count=3, output_layouts=["HWC"])
    process = found(built(lambda x: np.int64([os.getpid() == HOME])), 3)
    assert not any(value.item() for value, _ in process)


def test_for_batches():
    def shared(rows):
        mean = np.float32(sum(row.sum() for row in rows))
        return [row + mean for row in rows]

    check_same(shared, batch_processing=True)


def test_in_branches():
    @pipeline_def(batch_size=6, num_threads=2, device_id=None, enable_conditionals=True)
    def p():
        x = fn.external_source(lambda info: np.int32(info.idx_in_batch), batch=False)
        return fn.python_function(x, function=lambda v: np.asarray(v * 10)) if x > 2 else fn.copy(x)

    (got,), (expected,) = (p(workers=w).run() for w in ("processes", "threads"))
    assert [int(np.array(a)) for a in got] == [int(np.array(a)) for a in expected]


@pytest.mark.parametrize("batch_processing", [False, True])
def test_errors_say_what_they_say_in_threads(batch_processing):
    class OwnError(LookupError):
        pass

    def fails(x):
        if batch_processing or x.shape[0] == 3:
            raise OwnError("its own words")
        return x

    errors = []
    for workers in ("threads", "processes"):
        with pytest.raises(OwnError, match="its own words") as caught:
            built(fails, workers, batch_processing=batch_processing).run()
        errors.append(caught.value)
    assert str(errors[0]) == str(errors[1])
    assert errors[0].where == errors[1].where
    assert errors[1].where.raised.endswith("in fails")
    for wrong in (lambda x: None, lambda x: [1], lambda x: (x, x), lambda x: np.array(["text"])):
        texts = []
        for workers in ("threads", "processes"):
            with pytest.raises((TypeError, ValueError)) as caught:
                built(wrong, workers).run()
            texts.append((type(caught.value).__name__, str(caught.value)))
        assert texts[0] == texts[1]


def test_bad_samples_are_replaced_as_in_threads():
    def picky(x):
        if x.shape[0] == 2:
            raise ValueError("no twos")
        return x + 1

    for workers in ("threads", "processes"):
        pipe = built(picky, workers, on_bad_sample="replace")
        shapes = [value.shape[0] for value, _ in found(pipe, 1)]
        assert 2 not in shapes
        # Those of iterations that are worked on ahead are among them.
        assert [bad.index for bad in pipe.bad_samples if bad.iteration == 0] == [2, 6, 10]


def test_what_cannot_be_pickled_is_called_in_the_program():
    lock = threading.Lock()
    pipe = built(lambda x: np.int32([lock.locked(), os.getpid() == HOME]))
    assert all(value.tolist() == [0, 1] for value, _ in found(pipe))
    statistics = pipe.executor_statistics()
    assert statistics["workers"] == "processes"
    ((_, why),) = statistics["functions_not_in_workers"].items()
    assert "cannot be pickled" in why
    assert "lock" in why


class Unwelcome:
    def __reduce__(self):
        return _unpacked, (HOME,)


def _unpacked(home):
    assert home == os.getpid(), "only at home"


def test_what_cannot_be_unpickled_is_called_in_the_program():
    unwelcome = Unwelcome()
    pipe = built(lambda x: np.int32([unwelcome is None]))
    assert found(pipe)
    assert "only at home" in str(pipe.executor_statistics()["functions_not_in_workers"])


def test_the_environment_leaves_functions_in_the_program(monkeypatch):
    monkeypatch.setenv("HEADRACE_WORKERS", "processes")
    pipe = built(lambda x: np.int32([os.getpid() == HOME]), None)
    assert all(value.item() for value, _ in found(pipe))


@pytest.mark.parametrize("policy", ["raise", "replace"])
@pytest.mark.parametrize("batch_processing", [False, True])
def test_workers_that_end(policy, batch_processing, tmp_path):
    first = tmp_path / "first"

    def ends_once(x):
        if not first.exists():
            first.touch()
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    pipe = built(ends_once, on_bad_sample=policy, batch_processing=batch_processing)
    if policy == "raise":
        with pytest.raises(WorkerProcessError, match="ended while it worked on samples"):
            pipe.run()
    assert [value.shape[0] for value, _ in found(pipe, 1)] == [k % 4 for k in range(BATCH)]
    assert not pipe.bad_samples


def test_a_sample_that_ends_each_worker_is_a_bad_one():
    def crashes(x):
        if x.shape[0] == 3 and x[0, 0, 0] == 4:
            os.kill(os.getpid(), signal.SIGKILL)
        return x

    pipe = built(crashes, on_bad_sample="replace")
    values = [value for value, _ in found(pipe, 1)]
    (bad,) = [bad for bad in pipe.bad_samples if bad.iteration == 0]
    assert "ended while it worked on sample 3 of iteration 0" in bad.reason
    assert values[3].shape[0] != 3
    wait_until(lambda: pipe.executor_statistics()["workers"] == "processes")


def test_a_function_that_hangs():
    home = os.getpid()

    def hangs(x):
        while os.getpid() != home:
            time.sleep(3600)
        return x

    with pytest.raises(WorkerProcessError, match="hung, neither answering nor computing"):
        built(hangs, timeout=1).run()


def test_workers_draw_different_numbers():
    pipe = built(lambda x: np.array([np.random.rand(), os.getpid()]))  # noqa: NPY002
    drawn = [tuple(value) for value, _ in found(pipe, 4)]
    assert len({number for number, _ in drawn}) == len(drawn)


@pytest.mark.parametrize("depth", [1, 2])
@pytest.mark.parametrize("threads", [2, 4])
def test_no_earlier_than_the_depth_says(threads, depth, monkeypatch, tmp_path):
    """However many processes there are, which other samples are begun earlier for."""
    monkeypatch.setenv("HEADRACE_WORKERS", "processes")
    calls = []
    np.save(tmp_path / "a.npy", np.zeros((20, 20, 3), np.uint8))

    def function(x):
        calls.append(1)
        return x

    @pipeline_def(batch_size=4, num_threads=threads, device_id=None, prefetch_queue_depth=depth)
    def p():
        images = fn.readers.numpy(files=["a.npy"] * 8, file_root=str(tmp_path))
        return fn.python_function(fn.flip(images), function=function)

    pipe = p()
    ahead = []
    for taken in range(1, 25):
        pipe.run()
        ahead.append(len(calls) - 4 * taken)
    pipe._engine.executor.finish()
    assert pipe._engine.executor.processes is not None
    assert max(ahead) <= 4 * (depth - 1) == len(calls) - 4 * 24
