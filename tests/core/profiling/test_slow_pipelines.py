"""Pipelines that are made slow in one way, and what their profiles say about it.

Causes are naps and strong, so that a loaded machine does not hide them; where advice is about
processors, their number or their clock is injected.
"""

import json
import subprocess
import sys
import threading
import time

import cv2
import numpy as np
import pytest

from headrace import Pipeline, errors, fn, pipeline_def, profile, types
from headrace.executor import sampler
from headrace.executor.cpu import step_marks
from headrace.executor.loader import Loader
from headrace.operators import Arg, Input, IntArg, SampleOperator, operator
from headrace.pipeline import profiled
from headrace.pipeline.experimental import pipeline_def as debug_pipeline_def
from headrace.profiling import Profile
from headrace.profiling.recorder import NO_RECORD, processor_wait_nanoseconds


@operator(
    "testing.slow",
    inputs=Input(),
    args=[Arg("nap_ms", IntArg, 0, "Sleep."), Arg("loops", IntArg, 0, "Compute in Python.")],
    hidden=True,
)
class Slow(SampleOperator):
    """Takes time."""

    def infer(self, spec):
        return spec

    def cpu(self, c, sample):
        if c.args.nap_ms:
            time.sleep(c.args.nap_ms / 1e3)
        total = 0
        for k in range(c.args.loops):
            total += k
        return sample


@operator("testing.sorting", inputs=Input(), hidden=True)
class Sorting(SampleOperator):
    """Takes time of a processor, without the interpreter."""

    def infer(self, spec):
        return spec

    def cpu(self, c, sample):
        np.sort(np.arange(200_000)[::-1] % 7919)
        return sample


@pytest.fixture
def machine(monkeypatch):
    """Says how many processors there are, whether there is a GPU, and how long was waited for a
    processor: not at all, as if nobody else used them.
    """

    def is_of(processors, gpu=False, waited=lambda *_: 0):
        monkeypatch.setattr(profiled, "processors", lambda: processors)
        monkeypatch.setattr(profiled, "is_available", lambda: gpu)
        monkeypatch.setattr(sampler, "processor_wait_nanoseconds", waited)

    is_of(4)
    return is_of


def kinds(graph, *, batches=12, each=lambda k: None, threads=1, batch_size=4, **settings):
    record = Profile()
    settings = {"workers": "threads", **settings}
    pipe = Pipeline(batch_size, threads, None, seed=1, profile=record, **settings)
    with pipe:
        pipe.set_outputs(graph())
    for k in range(batches):
        pipe.run()
        each(k)
    del pipe
    return [advice.kind for advice in record.advice()]


both = pytest.mark.parametrize("workers", ["threads", "processes", None])
"""`None`: the engine would start processes, but the run is too short."""


def data():
    return fn.random.uniform(shape=(4,))


@both
def test_a_consumer_that_is_slower_has_nothing_to_do(machine, workers):
    found = kinds(data, each=lambda _: time.sleep(0.05), threads=2, workers=workers)
    assert found[0] == "nothing-to-do"


@pytest.mark.parametrize(("workers", "count"), [("threads", 1), ("processes", 2)])
def test_a_thread_that_waits_wants_others(machine, workers, count):
    nap = 5 * count**2
    found = kinds(lambda: fn.testing.slow(data(), nap_ms=nap), threads=count, workers=workers)
    assert found == ["more-threads"]


def test_threads_that_hold_the_interpreter_want_processes(machine):
    # Where others use the processors, the consumer may come late for some iterations.
    found = (kinds(lambda: fn.testing.slow(data(), loops=200_000), threads=2) for _ in range(20))
    assert ["worker-processes"] in found


def test_too_many_threads_want_to_be_fewer(machine, monkeypatch):
    machine(1, waited=processor_wait_nanoseconds)
    monkeypatch.setattr(step_marks, "thread_time_ns", time.perf_counter_ns)  # all are theirs
    found = kinds(lambda: fn.testing.sorting(data()), threads=16, batches=12, batch_size=16)
    assert found == ["fewer-threads"]


@both
def test_decoders_want_the_gpu_that_is_there(machine, workers):
    image = np.random.default_rng(1).integers(0, 255, (600, 800, 3), np.uint8)
    encoded = np.frombuffer(cv2.imencode(".jpg", image)[1].tobytes(), np.uint8)

    def graph():
        jpegs = fn.external_source(lambda: [encoded] * 4)
        return fn.decoders.image(jpegs)

    machine(1, gpu=True)
    assert kinds(graph, threads=2, workers=workers) == ["decode-on-gpu"]


@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_a_consumer_that_comes_in_bursts_wants_prefetch(machine, workers):
    found = kinds(
        lambda: fn.testing.slow(data(), nap_ms=10),
        batches=24,
        batch_size=1,
        each=lambda k: time.sleep(0.15 if k % 4 == 3 else 0),
        workers=workers,
    )
    assert found == ["more-prefetch"]


def test_a_slow_function_is_named(machine):
    def graph():
        return fn.python_function(data(), function=lambda x: (time.sleep(0.01), x)[1])

    assert kinds(graph) == ["slow-callback"]


@both
def test_a_slow_source_is_named(machine, workers):
    def source():
        time.sleep(0.03)
        return [np.zeros(3)] * 4

    found = kinds(lambda: fn.copy(fn.external_source(source)), threads=2, workers=workers)
    assert found == ["slow-source"]


def test_a_slow_disk_is_seen(machine, monkeypatch, tmp_path):
    load = Loader.load

    def slowly(self, entries, empty):
        time.sleep(0.02)
        return load(self, entries, empty)

    monkeypatch.setattr(Loader, "load", slowly)
    (tmp_path / "a").mkdir()
    for k in range(8):
        (tmp_path / "a" / f"{k}.jpg").write_bytes(b"x" * 100)
    assert kinds(lambda: fn.readers.file(file_root=str(tmp_path))[0]) == ["slow-disk"]


def test_where_processors_are_the_limit_the_operator_is_named(machine, monkeypatch):
    machine(1)
    # As if nobody else used the processor.
    monkeypatch.setattr(step_marks, "thread_time_ns", time.perf_counter_ns)
    assert kinds(lambda: fn.testing.slow(data(), loops=200_000)) == ["slow-operator"]


@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_where_others_have_the_processors_it_is_said(machine, workers):
    """They are all waited for, whatever is worked on: nobody is said to hold the interpreter."""
    asked = []

    def waited(others=()):
        asked.append(list(others))
        return 2 * time.perf_counter_ns()

    machine(8, waited=waited)
    found = kinds(lambda: fn.testing.slow(data(), nap_ms=5), threads=2, workers=workers, batches=24)
    assert found == ["busy-machine"]
    assert any(asked) is (workers == "processes")


def test_waits_for_processors_are_counted_of_processes_that_end(machine):
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        alone = processor_wait_nanoseconds()
        assert processor_wait_nanoseconds([other.pid]) >= alone > 0
        other.communicate(b"\n")
    assert processor_wait_nanoseconds([other.pid]) > 0


@both
def test_few_batches_say_nothing(machine, workers):
    assert kinds(data, batches=3, threads=2, workers=workers) == ["measure-longer"]


# -- what is recorded ------------------------------------------------------------------------------


@pipeline_def(batch_size=6, num_threads=2, seed=3)
def images():
    pixels = fn.random.uniform(range=(0, 255), shape=(40, 40, 3), dtype=types.UINT8)
    small = fn.resize(pixels, size=(20, 20))
    small = fn.flip(small, horizontal=fn.random.coin_flip())
    return small, fn.python_function(small, function=lambda x: x.copy())


@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_the_record_has_every_sample_of_every_operator(workers, tmp_path):
    record = Profile(tmp_path / "page.html")
    pipe = images(workers=workers, profile=record)
    assert pipe.profile is record
    taken = [[np.asarray(s) for s in pipe.run()[0]] for _ in range(10)]
    plain = images(workers=workers)
    for outputs in taken:
        for one, other in zip(outputs, plain.run()[0], strict=True):
            assert np.array_equal(one, other)
    while len(pipe._executor._schedule.queue) > sum(
        i.done for i in list(pipe._executor._schedule.queue)
    ):
        time.sleep(0.01)
    (recorder,) = record.recorders
    rows = np.concatenate([r.array() for name, r in recorder.lanes.items() if name != "consumer"])
    names = [label.name for label in recorder.labels]
    resized = rows[[names[code] == "fn.resize" for code in rows["code"]]]
    drawn = rows[[names[code] == "fn.random.coin_flip" for code in rows["code"]]]
    called = rows[[names[code] == "fn.python_function" for code in rows["code"]]]
    for k in range(10):
        assert drawn["samples"][drawn["iteration"] == k].sum() == 6
        assert resized["samples"][resized["iteration"] == k].sum() == 6
        assert called["samples"][called["iteration"] == k].sum() == 6
    assert (rows["end"] >= rows["begin"]).all()
    processes = [name for name in recorder.lanes if name.startswith("worker process")]
    assert bool(processes) is (workers == "processes")
    del pipe, plain
    assert "fn.resize" in (tmp_path / "page.html").read_text()
    assert json.loads((tmp_path / "page.trace.json").read_text())["traceEvents"]


def test_rows_of_a_thread_lie_beside_each_other_and_share_its_processor_time():
    """Also those of branches; what it has used of the processor is not asked at each step."""

    def definition():
        values = data()
        if fn.random.coin_flip(dtype=types.BOOL):
            values = fn.testing.slow(values, loops=100_000)
        else:
            values = fn.testing.slow(fn.testing.slow(values, loops=2000), loops=2000)
        return fn.testing.slow(values, loops=1000)

    record = Profile()
    pipe = pipeline_def(definition, enable_conditionals=True)(
        batch_size=8, num_threads=2, device_id=None, workers="threads", seed=3, profile=record
    )
    for _ in range(6):
        pipe.run()
    del pipe
    (recorder,) = record.recorders
    kinds = np.array([label.kind for label in recorder.labels])
    slow = sorted({label.number for label in recorder.labels if label.name == "fn.testing.slow"})
    counted = dict.fromkeys(slow, 0)
    for rows in (lane.array() for name, lane in recorder.lanes.items() if "worker" in name):
        steps = None
        for row in rows:
            if kinds[row["code"]] != "chunk":
                steps = [*(steps or ()), row]
                label = recorder.labels[row["code"]]
                if label.number in counted:
                    counted[label.number] += row["samples"]
                continue
            own = np.array([step for step in steps if step["begin"] >= row["begin"]])
            assert (own["begin"][1:] == own["end"][:-1]).all()
            assert own["begin"][0] == row["begin"]
            assert own["end"][-1] <= row["end"]
            assert (own["processor"] >= 0).all()
            assert 0 < own["processor"].sum() <= row["processor"]
            steps = None
    long, first, second, last = (counted[number] for number in slow)
    assert long + first == last
    assert first == second > 0 < long


def test_who_looks_takes_little_of_a_processor():
    assert sampler._period(20_000) == 10_000_000
    assert sampler._period(60_000) == 20_000_000
    assert sampler._period(600_000) == 50_000_000


def test_without_a_profile_nothing_of_it_is_there():
    pipe = images(workers="threads")
    pipe.run()
    executor = pipe._executor
    assert executor._recorder is executor._stages._recorder is NO_RECORD
    assert not any(t.name == "headrace-profiler" for t in threading.enumerate())
    runners = [r for one in executor._cpu._runners for r in one.values()]
    assert [r._marks for r in runners] == [None] * len(runners)
    assert runners


def test_a_with_statement_records_what_is_built_in_it(tmp_path):
    before = images(workers="threads")
    before.run()
    with profile(tmp_path / "page.html") as record:
        inside = images(workers="threads")
        for _ in range(3):
            inside.run()
            before.run()
        assert not (tmp_path / "page.html").exists()
    assert len(record.recorders) == 1
    assert (tmp_path / "page.html").exists()
    with pytest.raises(errors.UsageError, match="no pipeline was built within"), profile():
        before.run()


@pytest.mark.parametrize("path", ["page.txt", "no/such/page.html"])
def test_paths_that_cannot_be_written(path, tmp_path):
    with pytest.raises(errors.ArgumentValueError, match="profile"):
        Pipeline(2, 1, profile=tmp_path / path)


def test_what_is_no_profile():
    with pytest.raises(errors.ArgumentTypeError, match="`profile` is 3; expected a path"):
        Pipeline(2, 1, profile=3)


def test_debug_mode_is_not_recorded():
    @debug_pipeline_def(batch_size=2, num_threads=1, debug=True)
    def definition():
        return data()

    with pytest.raises(NotImplementedError, match="`profile` is not supported in debug mode"):
        definition(profile=Profile())


PROGRAM = """
import os, sys
from headrace import Pipeline, fn

pipe = Pipeline(4, 1, profile="page.html")
with pipe:
    pipe.set_outputs(fn.random.uniform(shape=3) + 1)
for _ in range(3):
    pipe.run()
pid = os.fork()
if not pid:
    del pipe
    os._exit(os.path.exists("page.html"))
assert os.waitpid(pid, 0)[1] == 0
"""


def test_the_end_of_the_program_writes_the_page_and_a_fork_does_not(tmp_path):
    done = subprocess.run(
        [sys.executable, "-W", "ignore", "-c", PROGRAM],
        cwd=tmp_path,
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert not done.stderr
    assert "Who waits for whom" in (tmp_path / "page.html").read_text()
