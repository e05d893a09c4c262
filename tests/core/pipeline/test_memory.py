"""The limit of memory, who holds it, what is set aside for it, and statistics of it."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    UnknownArgumentError,
    UsageError,
)
from headrace.pipeline import Pipeline, experimental
from headrace.tensors.pool import HOST_POOL
from tests.support.processes import wait_until

MIB = 1 << 20
WORKERS = pytest.mark.parametrize("workers", ["threads", "processes"])


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def large(side=512):
    """1 MiB of external data a batch, 4 MiB of floats as output."""
    data = fn.external_source(
        lambda info: np.full((side, side), info.idx_in_epoch % 251, np.uint8),
        batch=False,
        name="in",
    )
    return fn.cast(data, dtype=types.FLOAT, name="out")


def settled(pipe):
    """Wait until all that is scheduled is ready."""
    wait_until(lambda: pipe.memory_report().in_progress.host == 0)
    return pipe.memory_report()


@WORKERS
def test_limit_slows_prefetch_and_changes_nothing_else(workers):
    limit = 14 * MIB  # one of 5 MiB and a fraction that is ready, and one more
    pipes = [
        large(workers=workers, prefetch_queue_depth=6, memory_limit_bytes=limit),
        large(workers=workers, prefetch_queue_depth=6),
    ]
    most = [0, 0]
    for _ in range(12):
        outputs = [pipe.run()[0] for pipe in pipes]
        np.testing.assert_array_equal(*[out.as_array() for out in outputs])
        del outputs
        for k, pipe in enumerate(pipes):
            most[k] = max(most[k], settled(pipe).in_use.host)
    assert 9 * MIB < most[0] <= limit
    assert most[1] > 2 * limit


@WORKERS
@pytest.mark.parametrize("api", ["run", "scheduled"])
def test_there_is_always_one_in_progress(workers, api):
    pipe = large(workers=workers, prefetch_queue_depth=3, memory_limit_bytes=1)
    kept = []
    for k in range(6):
        if api == "run":
            kept.append(pipe.run()[0].as_array())
        else:
            pipe.schedule_run()
            kept.append(pipe.share_outputs()[0].as_array())
            pipe.release_outputs()
        assert pipe.memory_report().outputs == (), "nothing is begun before it is asked for"
        assert (kept[-1][:, 0, 0] == np.arange(4 * k, 4 * k + 4)).all()
    assert pipe.memory_report().with_user.host >= 6 * 4 * MIB


def test_limit_with_readers_and_epochs(tmp_path):
    for k in range(10):
        (tmp_path / f"{k}.bin").write_bytes(bytes([k]) * 100_000)

    @pipeline_def(batch_size=2, num_threads=2, device_id=None, prefetch_queue_depth=4)
    def files():
        data, _ = fn.readers.file(files=sorted(map(str, tmp_path.iterdir())), name="reader")
        return data

    pipe = files(memory_limit_bytes={"host": 450_000})
    seen = [int(row) for _ in range(10) for row in pipe.run()[0].as_array()[:, 0]]
    assert seen == [*range(10)] * 2
    assert settled(pipe).in_use.host <= 450_000


def test_a_limit_goes_by_sizes_that_were_told():
    scheduled = {}
    for size in (0, MIB):
        # What worker processes are given of memory for the first batch counts as well.
        pipe = large(
            workers="threads",
            memory_limit_bytes=34 * MIB,
            bytes_per_sample=size,
            prefetch_queue_depth=6,
        )
        pipe.run()
        # Of sizes that nobody has told, the first iteration tells.
        scheduled[size] = len(pipe._engine.executor.scheduled())
        assert (pipe.memory_report().estimate.host > 7 * MIB) is (size > 0)
    assert scheduled[0] == 0
    assert scheduled[MIB] >= 3


@WORKERS
def test_limit_with_checkpoints_and_restarted_epochs(workers, tmp_path):
    files = [str(tmp_path / f"{k:02}.bin") for k in range(37)]
    for k, name in enumerate(files):
        (tmp_path / name).write_bytes(bytes([k]) * 50_000)

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=3, enable_checkpointing=True)
    def shuffled():
        data, _ = fn.readers.file(files=files, random_shuffle=True, name="reader")
        return fn.cast(data, dtype=types.INT32), fn.random.uniform(shape=(2,))

    def batch(pipe):
        data, drawn = pipe.run()
        return data.as_array()[:, 0].tolist(), drawn.as_array().tolist()

    free = shuffled(workers=workers, prefetch_queue_depth=3)
    limited = shuffled(workers=workers, prefetch_queue_depth=3, memory_limit_bytes=2_000_000)
    for k in range(25):
        assert batch(limited) == batch(free)
        if k in (7, 18):
            found = limited.checkpoint()
            limited = shuffled(
                workers=workers,
                prefetch_queue_depth=4,
                memory_limit_bytes=1_500_000 + k,
                checkpoint=found,
            )
        if k == 12:
            assert limited._restart_epoch() == free._restart_epoch()
    assert settled(limited).in_use.host <= 1_500_018


@pytest.mark.parametrize(
    ("given", "error"),
    [
        (0, ArgumentValueError),
        (-5, ArgumentValueError),
        ({"host": 0}, ArgumentValueError),
        (1.5, ArgumentTypeError),
        ("1 GB", ArgumentTypeError),
        (True, ArgumentTypeError),
        ({"gpu": 10}, UnknownArgumentError),
        ({}, UnknownArgumentError),
    ],
)
def test_wrong_limits(given, error):
    with pytest.raises(error, match="memory_limit_bytes"):
        Pipeline(batch_size=1, memory_limit_bytes=given)


def test_report_says_who_holds_what():
    may_go_on, is_inside = threading.Event(), threading.Event()

    def wait(array):
        if array[0, 0]:
            is_inside.set()
            assert may_go_on.wait(60)
        return array + 1

    @pipeline_def(batch_size=1, num_threads=2, device_id=None, prefetch_queue_depth=2)
    def waits():
        data = fn.external_source(name="in", dtype=types.UINT8, ndim=2)
        decoded = fn.cast(data, dtype=types.INT16, name="wide")
        return fn.python_function(decoded, function=wait, name="slow"), decoded

    pipe = waits(workers="threads")
    HOST_POOL.trim()  # larger buffers of earlier tests would be used
    assert pipe.memory_report().in_use.host == 0
    for k in range(4):
        pipe.feed_input("in", np.full((1, 1000, 1000), k, np.uint8))
    slow, first = pipe.run()
    assert is_inside.wait(60)
    part = first.as_array()[0, 3:4]
    del first
    report = pipe.memory_report()
    by_name = {(o.operator, o.output): o for o in report.outputs}
    assert set(by_name) == {("in", 0), ("wide", 0)}
    assert by_name["in", 0].stage == -1
    assert by_name["wide", 0].stage == 0
    assert 2e6 <= by_name["wide", 0].bytes < 2.3e6 * by_name["wide", 0].batches
    assert report.in_progress.host == sum(o.bytes for o in report.outputs)
    assert report.ready.host == 0
    assert 1e6 <= report.waiting_inputs.host < 2.3e6
    # Two outputs, of which one is referred to, and a copy that the function works on; the data of
    # the first batch, too, where the thread that has made it is the one that calls the function.
    assert 6e6 <= report.with_user.host < 7.7e6
    parts = report.in_progress.plus(report.waiting_inputs).plus(report.with_user)
    assert report.in_use == parts
    text = str(report)
    for word in ("wide[0]", "in progress", "with user", "MiB", "host", "unused"):
        assert word in text
    may_go_on.set()
    report = settled(pipe)
    assert report.ready.host > 5e6
    assert 4e6 <= report.with_user.host < 4.4e6
    pool = next(p for p in pipe.memory_report().pools if p.name == "host")
    assert pool.bytes_in_use >= report.in_use.host
    del part, slow
    pipe.run()
    pipe.run()
    pipe.run()
    pipe._in_use.clear()
    gc.collect()
    report = pipe.memory_report()
    assert report.with_user.host == 0
    assert report.in_use == report.waiting_inputs, "a source that is fed keeps the last batch"


@pipeline_def(
    batch_size=8, num_threads=2, device_id=None, enable_memory_stats=True, workers="threads"
)
def ragged(seed_of_data=0, hint=None):
    rng = np.random.default_rng(seed_of_data)

    def sizes(info):
        return np.zeros(rng.integers(50_000, 200_000), np.uint8)

    data = fn.external_source(sizes, batch=False, name="in")
    return fn.cast(data, dtype=types.INT16, name="out", bytes_per_sample_hint=hint)


@pytest.mark.parametrize("depth", [1, 2, 4])
def test_sizes_that_are_told_ahead_remove_allocations(depth):
    def made_by(pipe, iterations):
        pipe.build()
        HOST_POOL.trim()
        before = HOST_POOL.stats().buffers_made
        for _ in range(iterations):
            pipe.run()
        return HOST_POOL.stats().buffers_made - before

    pipe = ragged(prefetch_queue_depth=depth)
    untold = made_by(pipe, 40)
    statistics = pipe.executor_statistics()
    assert set(statistics) == {"CPU_in", "CPU_out"}
    told = statistics["CPU_out"]["max_reserved_memory_size"]
    assert told[0] >= statistics["CPU_out"]["max_real_memory_size"][0] > 250_000
    by_pipeline = statistics["CPU_in"]["max_reserved_memory_size"][0]
    del pipe
    gc.collect()
    again = ragged(hint=told, bytes_per_sample=by_pipeline, prefetch_queue_depth=depth)
    assert untold > 8
    assert made_by(again, 40) == 0
    kept = again.run()[0].at(0)
    assert HOST_POOL._live_reserves()
    del again
    gc.collect()
    # Only what is still in use of it is left.
    assert not HOST_POOL._live_reserves()
    assert HOST_POOL.stats().bytes_in_use >= kept.nbytes
    del kept
    gc.collect()
    HOST_POOL.stats()
    assert not any(ref() for ref in HOST_POOL._reserves)


def test_worker_processes_are_given_memory_of_the_size_that_was_told(monkeypatch):
    from headrace.executor.processes.worker_process import WorkerProcess

    asked = []
    send = WorkerProcess.send

    def counted(self, message, *file):
        asked.append(message[0])
        send(self, message, *file)

    monkeypatch.setattr(WorkerProcess, "send", counted)
    counts = []
    for hint in (None, [400_000]):
        asked.clear()
        pipe = ragged(hint=hint, workers="processes")
        for _ in range(3):
            pipe.run()
        assert "task" in asked
        counts.append(asked.count("memory"))
        del pipe
        gc.collect()
    assert counts[0] > 0
    assert counts[1] == 0


@pytest.mark.parametrize("size", [1.5, "10"])
def test_bytes_per_sample_of_another_type(size):
    with pytest.raises(ArgumentTypeError, match="`bytes_per_sample` is"):
        Pipeline(batch_size=1, bytes_per_sample=size)


def test_debug_mode_has_no_batches_to_report_on():
    @experimental.pipeline_def(batch_size=2, num_threads=1, device_id=None, debug=True)
    def debugged():
        return fn.random.uniform(shape=(1000,))

    pipe = debugged(memory_limit_bytes=MIB)
    assert pipe.run()[0].as_array().shape == (2, 1000)
    assert pipe.executor_statistics() == {}
    with pytest.raises(UsageError, match="works on nothing ahead"):
        pipe.memory_report()


def test_another_number_of_hints_than_of_outputs():
    @pipeline_def(batch_size=8, num_threads=2, device_id=None)
    def hinted():
        data = fn.external_source(lambda: np.zeros((8, 3)))
        return fn.copy(data, bytes_per_sample_hint=[10, 20])

    with pytest.raises(ArgumentValueError, match=r"has 2 values.*\n?.*1 outputs"):
        hinted().build()


def test_statistics_are_of_the_largest_batch():
    sizes = iter([[10, 20, 30, 40], [1000, 1, 1, 1], [10] * 4, [10] * 4, [10] * 4])

    @pipeline_def(batch_size=4, num_threads=2, device_id=None, prefetch_queue_depth=1)
    def varying():
        data = fn.external_source(lambda: [np.zeros(n, np.uint8) for n in next(sizes)], name="in")
        inner = fn.cast(data, dtype=types.INT32, name="inner")
        return fn.cast(inner, dtype=types.INT64, name="out")

    pipe = varying(enable_memory_stats=True)
    assert pipe.executor_statistics() == {}
    pipe.build()
    assert pipe.executor_statistics() == {}
    for _ in range(4):
        pipe.run()
    found = pipe.executor_statistics()
    assert found["CPU_in"]["real_memory_size"] == [1003]
    assert found["CPU_in"]["max_real_memory_size"] == [251]
    assert found["CPU_out"]["real_memory_size"] == [8024]
    # Samples went through it one by one: there never was a batch.
    assert (
        found["CPU_inner"]["real_memory_size"] == found["CPU_inner"]["reserved_memory_size"] == [0]
    )
    assert pipe.counters()["iterations"] >= 4
    assert varying().executor_statistics() == {}
