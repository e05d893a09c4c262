"""Worker processes: what they hand over, and how they fail."""

from __future__ import annotations

import gc
import multiprocessing
import os
import signal
import threading
import time
from multiprocessing import connection
from types import SimpleNamespace

import numpy as np
import pytest

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    DataTypeError,
    ShapeError,
    SourceWorkerError,
    UsageError,
)
from headrace.executor.sources import process_pool, process_worker
from headrace.graph.user_line import own_folders
from tests.core.executor.sources import sources
from tests.core.executor.sources.sources import pipeline, run, values

METHODS = ["fork", "spawn", "forkserver"]


@pytest.fixture(autouse=True)
def nothing_left_behind():
    before = _shared()
    yield
    gc.collect()  # errors hold the frames that hold the pipelines
    assert not multiprocessing.active_children()
    assert _shared() <= before


def _shared():
    """Names of shared memory. Semaphores are others': no source has any, other programs have."""
    if not os.path.isdir("/dev/shm"):
        return set()
    others = ("sem.", "headrace-cache")
    return {name for name in os.listdir("/dev/shm") if not name.startswith(others)}


@pytest.mark.parametrize("method", METHODS)
def test_samples_come_from_several_processes(method):
    pipe = pipeline(sources.numbered, batch=False, options={"py_start_method": method})
    found = values(pipe.run())
    assert [number for number, _ in found] == [0, 1, 2, 3]
    makers = {pid for _, pid in found}
    assert makers == set(pipe._py_pool.pids())
    assert os.getpid() not in makers
    del pipe


@pytest.mark.parametrize("method", METHODS)
def test_lambdas_and_local_functions(method):
    offset = 10

    def local(info):
        return np.array([helper(info)])

    def helper(info):
        return info.idx_in_batch + offset

    for source in (local, lambda info: np.array([info.idx_in_batch + offset])):
        pipe = pipeline(source, batch=False, options={"py_start_method": method})
        assert values(pipe.run()) == [[10], [11], [12], [13]]


def test_local_classes():
    class Local:
        def __call__(self, info):
            return np.array([info.idx_in_batch])

    pipe = pipeline(Local(), batch=False, options={"py_start_method": "spawn"})
    assert values(pipe.run()) == [[0], [1], [2], [3]]


def test_sources_that_cannot_be_pickled():
    lock = threading.Lock()
    pipe = pipeline(
        lambda info: lock and np.zeros(1), batch=False, options={"py_start_method": "spawn"}
    )
    with pytest.raises(ArgumentTypeError, match='py_start_method="fork"'):
        pipe.build()


def test_the_users_own_pickler():
    import pickle

    for pickler in (pickle, (pickle, {"protocol": 4}), [pickle, {}, {"encoding": "ASCII"}]):
        options = {"py_start_method": "spawn", "py_callback_pickler": pickler, "py_num_workers": 1}
        assert values(pipeline(sources.ending, options=options).run()) == [[0]] * 4


@pytest.mark.parametrize("pickler", [3, (), (3, {}), ({}, {}, {}, {})])
def test_picklers_that_are_none(pickler):
    options = {"py_start_method": "spawn", "py_callback_pickler": pickler}
    with pytest.raises(ArgumentValueError, match="py_callback_pickler"):
        pipeline(sources.ending, options=options).build()


def test_unknown_start_method():
    with pytest.raises(ArgumentValueError, match="spawn"):
        pipeline(sources.ending, options={"py_start_method": "teleport"}).build()


def test_ends_and_new_epochs():
    pipe = pipeline(sources.ending)
    for _ in range(3):
        for k in range(3):
            assert values(pipe.run()) == [[k]] * 4
        with pytest.raises(StopIteration):
            pipe.run()
        pipe.reset()


def test_error_of_a_source():
    pipe = pipeline(sources.raising, batch=False)
    with pytest.raises(LookupError, match="not this one") as caught:
        run(pipe)
    notes = "\n".join(caught.value.__notes__)
    assert "sample 2 of the batch" in notes
    assert "sources.py" in notes  # the line that created the source
    cause = str(caught.value.__cause__)
    assert "in raising" in cause
    assert not any(folder in cause for folder in own_folders())
    with pytest.raises(LookupError):  # the same iteration is asked for again
        pipe.run()
    assert len(multiprocessing.active_children()) == 2


def test_errors_that_cannot_be_pickled():
    pipe = pipeline(sources.raising_odd, batch=False)
    with pytest.raises(sources.OddError, match="odd one") as caught:
        pipe.run()
    assert "in raising_odd" in str(caught.value.__cause__)


def test_sources_that_exit():
    with pytest.raises(SourceWorkerError, match="SystemExit"):
        pipeline(sources.exiting, batch=False).run()


@pytest.mark.sweep
@pytest.mark.parametrize("method", METHODS)
@pytest.mark.parametrize(
    ("source", "text"),
    [(sources.killed, "killed by signal SIGKILL"), (sources.ended, "exit code 7")],
    ids=["killed", "ended"],
)
def test_workers_that_die(source, text, method):
    pipe = pipeline(source, batch=False, options={"py_start_method": method})
    with pytest.raises(SourceWorkerError, match=text) as caught:
        run(pipe)
    assert "samples 2 to 3 of iteration 1" in str(caught.value)
    assert "sources.py" in str(caught.value)
    assert not multiprocessing.active_children()  # the others are gone as well
    with pytest.raises(SourceWorkerError, match=text):
        pipe.run()


def test_forks_of_another_pool_keep_no_worker():
    """They have the connections of all that came before."""
    first, second = (
        pipeline(sources.numbered, batch=False, options={"py_start_method": "fork"})
        for _ in range(2)
    )
    first.run()
    second.run()
    workers = [each.process for each in first._py_pool._processes._processes]
    del first
    gc.collect()
    assert [process.exitcode for process in workers] == [0] * len(workers)  # none was killed
    second.run()


def test_what_a_worker_had_done_before_it_died(monkeypatch):
    # Results of the iteration before are still unread when the death is noticed.
    def receive_late(self, handle):
        connection.wait([worker.process.sentinel for worker in self._processes], 60)
        for number, worker in enumerate(self._processes):
            if not worker.process.is_alive():
                with self._exchange(number):
                    raise BrokenPipeError

    monkeypatch.setattr(process_pool.ProcessPool, "_receive_some", receive_late)
    with pytest.raises(SourceWorkerError, match="samples 2 to 3 of iteration 1"):
        run(pipeline(sources.ended, batch=False))


def test_a_worker_that_dies_idle():
    pipe = pipeline(sources.numbered, batch=False)
    pipe.run()
    for pid in pipe._py_pool.pids():
        os.kill(pid, signal.SIGKILL)
    with pytest.raises(SourceWorkerError, match="SIGKILL"):
        run(pipe, 10)


def test_a_worker_that_is_stopped():
    with pytest.raises(SourceWorkerError, match="is stopped"):
        pipeline(sources.stopped, batch=False).run()


def test_a_source_that_hangs(monkeypatch):
    monkeypatch.setattr(process_pool, "_ASKS_AFTER_SECONDS", 0.1)
    monkeypatch.setattr(process_pool, "_WARN_AFTER_SECONDS", 1.0)
    hear = process_pool.ProcessPool._hear

    def warn_first(pool, awaited, report):
        pool._timeout = 3.0 if pool._warned else 1000.0  # a busy machine may be late with both
        hear(pool, awaited, report)

    monkeypatch.setattr(process_pool.ProcessPool, "_hear", warn_first)
    pipe = pipeline(sources.hanging, batch=False, options={"py_worker_timeout_seconds": 3.0})
    with (
        pytest.warns(RuntimeWarning, match="has not returned for") as warned,
        pytest.raises(SourceWorkerError, match="hangs") as caught,
    ):
        run(pipe)
    # JAX warns of every fork, too, where a test has used it.
    ours = next(w for w in warned if "has not returned for" in str(w.message))
    for message in (str(ours.message), str(caught.value)):
        assert "time.sleep(1000)" in message
        assert "sources.py" in message
    assert "py_worker_timeout_seconds" in str(caught.value)


def test_timeouts_that_are_none():
    with pytest.raises(ArgumentValueError, match="py_worker_timeout_seconds"):
        pipeline(sources.hanging, options={"py_worker_timeout_seconds": 0})


@pytest.mark.filterwarnings("ignore:A parallel external source has not returned")
def test_a_source_that_computes_for_long_is_left_alone(monkeypatch):
    judged = multiprocessing.get_context("fork").Event()
    hear = process_pool.ProcessPool._hear

    def judge(pool, awaited, report):
        pool._timeout = 0.5
        hear(pool, awaited, report)
        pool._timeout = 60  # for the next answer, which takes long on a busy machine
        if report.seconds > 0.6:
            judged.set()

    def busy(index):
        while not judged.is_set():
            pass
        return [np.zeros(1)]

    monkeypatch.setattr(process_pool.ProcessPool, "_hear", judge)
    monkeypatch.setattr(process_pool, "_ASKS_AFTER_SECONDS", 0.1)
    monkeypatch.setattr(process_pool, "_WARN_AFTER_SECONDS", 0.1)
    # A busy machine may not run the worker for seconds: its clock stands still meanwhile.
    clock = SimpleNamespace(
        monotonic=time.process_time, process_time=time.process_time, thread_time=time.thread_time
    )
    monkeypatch.setattr(process_worker, "time", clock)
    options = {"py_worker_timeout_seconds": 60, "py_num_workers": 1, "prefetch_queue_depth": 1}
    assert values(pipeline(busy, options=options).run()) == [[0.0]]
    assert judged.is_set()


@pytest.mark.parametrize(
    ("source", "error"),
    [
        (lambda i: [np.zeros(1), np.zeros((1, 1))], ShapeError),
        (lambda i: ["text"], DataTypeError),
        (lambda i: [None], DataTypeError),
        (lambda i: [], ShapeError),
        (lambda i: [np.zeros(1)] * 5, ShapeError),
    ],
    ids=["ranks", "text", "None", "empty", "too many"],
)
def test_data_that_is_none(source, error):
    with pytest.raises(error):
        pipeline(source).run()


def test_samples_of_different_workers_must_fit_together():
    with pytest.raises(ShapeError, match="Sample 2 has 2 dimensions"):
        pipeline(lambda i: np.zeros((1,) * (1 + i.idx_in_batch // 2)), batch=False).run()


def test_batches_stay_as_they_are_while_they_are_kept():
    pipe = pipeline(lambda i: [np.full((30, 30), i)] * 4)
    kept = [pipe.run()[0] for _ in range(3 * process_pool.LENT_LIMIT)]
    for k, batch in enumerate(kept):
        assert (np.asarray(batch.as_array()) == k).all()
    # So many are not kept in shared memory.
    sizes = pipe.external_source_shm_statistics()["capacities"]
    assert len(sizes) <= 2 * (process_pool.LENT_LIMIT + 8)


def test_batches_outlive_the_pipeline():
    pipe = pipeline(lambda i: [np.full((30, 30), i + 5)] * 4)
    batch = pipe.run()[0]
    del pipe
    assert (np.asarray(batch.as_array()) == 5).all()


@pytest.mark.skipif(not os.path.isdir("/proc/self/fd"), reason="files are counted in /proc")
def test_shared_memory_is_given_back_with_the_pipeline():
    def open_segments():
        links = [f"/proc/self/fd/{n}" for n in os.listdir("/proc/self/fd")]
        return sum("memfd:headrace" in os.readlink(p) for p in links if os.path.lexists(p))

    gc.disable()
    try:
        before = open_segments()
        pipe = pipeline(sources.forever)
        run(pipe)
        assert open_segments() > before
        del pipe
        assert open_segments() <= before
    finally:
        gc.enable()


def test_shared_memory_is_used_again():
    pipe = pipeline(lambda i: [np.full((30, 30), i)] * 4)
    for _ in range(50):
        pipe.run()
    found = pipe.external_source_shm_statistics()
    assert len(found["capacities"]) < 20
    assert found["per_sample_capacities"] == [c // 4 for c in found["capacities"]]


def test_shared_memory_grows():
    pipe = pipeline(lambda i: [np.full((10**i,), i)] * 4, prefetch_queue_depth=1)
    for k in range(6):
        assert [s.shape for s in map(np.asarray, pipe.run()[0])] == [(10**k,)] * 4


def test_a_guess_of_the_memory():
    pipe = pipeline(lambda i: [np.zeros(1)] * 4, bytes_per_sample_hint=100_000)
    pipe.run()
    assert min(pipe.external_source_shm_statistics()["capacities"]) >= 400_000


def test_several_sources_share_the_workers():
    from headrace import Pipeline, fn

    pipe = Pipeline(2, 1, None, py_num_workers=2)
    with pipe:
        pipe.set_outputs(
            fn.external_source(
                lambda info: np.array([info.idx_in_epoch]), batch=False, parallel=True
            ),
            fn.external_source(lambda i: [np.array([10 * i])] * 2, parallel=True),
            fn.external_source(
                [[np.array([k])] * 2 for k in range(3)], parallel=True, cycle="raise"
            ),
            fn.external_source(lambda i: [np.array([7])] * 2),
        )
    for _ in range(2):
        for k in range(3):
            a, b, c, d = ([int(s[0]) for s in map(np.asarray, out)] for out in pipe.run())
            assert (a, b, c, d) == ([2 * k, 2 * k + 1], [10 * k] * 2, [k] * 2, [7] * 2)
        with pytest.raises(StopIteration):
            pipe.run()
        pipe.reset()
    assert len(pipe._py_pool.pids()) == 2


def test_workers_can_be_started_before_the_build():
    pipe = pipeline(sources.numbered, batch=False)
    pipe.start_py_workers()
    pids = pipe._py_pool.pids()
    pipe.start_py_workers()
    pipe.build()
    assert pipe._py_pool.pids() == pids
    assert values(pipe.run())[0][0] == 0


def test_workers_that_were_started_and_never_used():
    pipe = pipeline(sources.numbered, batch=False)
    pipe.start_py_workers()
    assert len(multiprocessing.active_children()) == 2
    del pipe
    assert not multiprocessing.active_children()


def test_a_source_that_belongs_to_the_pipeline_itself():
    from headrace import Pipeline, fn

    class Own(Pipeline):
        def __init__(self):
            super().__init__(2, 1, None)

        def define_graph(self):
            return fn.external_source(self.sample, batch=False, parallel=True)

        def sample(self, info):
            return np.array([info.idx_in_epoch])

    pipe = Own()
    assert values(pipe.run()) == [[0], [1]]
    del pipe
    gc.collect()
    assert not multiprocessing.active_children()


def test_iterables_need_one_worker():
    pipe = pipeline([[np.zeros(1)]])
    with pytest.warns(UserWarning, match="Only 1 of 2 workers"):
        pipe.build()
    assert len(pipe._py_pool.pids()) == 1


def test_processes_of_daemons(monkeypatch):
    monkeypatch.setitem(multiprocessing.current_process()._config, "daemon", True)
    with pytest.raises(UsageError, match='parallel="threads"'):
        pipeline(sources.numbered, batch=False).build()


def test_a_fork_cannot_use_the_workers():
    pipe = pipeline(sources.numbered, batch=False)
    pipe.run()
    read, write = os.pipe()
    child = os.fork()
    if not child:
        try:
            pipe._py_pool._processes._check_open()
            os.write(write, b"no error")
        except UsageError as error:
            os.write(write, str(error).encode())
        finally:
            os._exit(0)
    os.waitpid(child, 0)
    text = os.read(read, 1000).decode()
    os.close(read)
    os.close(write)
    assert "another process" in text
    assert len(values(pipe.run())) == 4
