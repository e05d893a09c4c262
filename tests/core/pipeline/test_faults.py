"""What goes wrong in users' code, in threads and in processes: a clear error, never a hang."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import textwrap
import threading
import weakref
from pathlib import Path

import numpy as np
import pytest

import headrace
from headrace import Pipeline, errors, fn, ops, pipeline_def
from headrace.operators.readers.base import Reader
from headrace.operators.readers.base import reader as declare_reader
from headrace.operators.readers.index import Index
from headrace.operators.support import registry
from headrace.operators.support.operator import BatchOperator, SampleOperator, operator
from headrace.operators.support.schema import Input, Spec
from headrace.tensors.pool import HOST_POOL
from headrace.types import DALIDataType
from tests.support.processes import PATIENCE_SECONDS, wait_until
from tests.support.sweeps import always

ROOT = Path(__file__).parents[3]


class OddError(Exception):
    """Its constructor takes something else than a message."""

    def __init__(self, code, *, detail):
        super().__init__(f"odd {code}: {detail}")


class SpeechlessError(Exception):
    def __str__(self):
        raise ValueError("no text")


def raising(kind):
    if kind is NumberError:
        return NumberError(3)
    return OddError(3, detail="x") if kind is OddError else kind("on purpose")


class NumberError(Exception):
    """Its constructor fails on a message."""

    def __init__(self, number):
        super().__init__(f"{int(number):d}")


KINDS = [
    ValueError,
    KeyError,
    OSError,
    AssertionError,
    UnicodeError,
    MemoryError,
    OddError,
    NumberError,
    SpeechlessError,
    StopIteration,
    KeyboardInterrupt,
    SystemExit,
    GeneratorExit,
]
PLACES = ["constructor", "infer", "cpu", "for_arguments", "batch", "third sample"]


@pytest.fixture
def declare():
    """Declares an operator ``fn.testing.faulty`` for the time of a test."""

    def make(place, kind, reader=False):
        def at(name):
            if place == name:
                raise raising(kind)

        class Faulty(SampleOperator):
            """Fails."""

            def __init__(self, *arguments):
                at("constructor")
                super().__init__(*arguments)

            def infer(self, *inputs):
                at("infer")
                return inputs[0] if inputs else Spec(DALIDataType.INT32, 0)

            def cpu(self, c, data):
                at("cpu")
                if c.index == 2:
                    at("third sample")
                return data

            @classmethod
            def for_arguments(cls, args):
                at("for_arguments")
                return FaultyBatch if place == "batch" else cls

        class FaultyEntries(Index):
            def fetch(self, entry):
                at("fetch")
                return (np.array(entry, np.int32),)

            def source(self, entry):
                at("source")
                return ""

        class FaultyReader(Reader):
            """Fails, too."""

            def open(self, batch_size, seed):
                at("open")
                super().open(batch_size, seed)

            def list_entries(self):
                at("list_entries")
                return FaultyEntries(4, [Spec(DALIDataType.INT32, 0)])

            def infer(self, *data):
                at("infer")
                return data

            def draw(self, count, refill=False):
                at("draw")
                return super().draw(count, refill=refill)

            def state(self):
                at("state")
                return super().state()

        class FaultyBatch(BatchOperator):
            """Fails."""

            def cpu(self, c, batch):
                at("batch")
                return batch

        if reader:
            declare_reader("testing.faulty")(FaultyReader)
        else:
            operator("testing.faulty", inputs=Input("data"))(Faulty)
        schema = FaultyBatch.schema = registry.find("testing.faulty")
        return lambda *inputs: headrace.api.functions.function_of(schema, "fn")(*inputs)

    yield make
    registry._schemas.pop("testing.faulty", None)


def build(graph, **settings):
    settings = {"batch_size": 4, "num_threads": 2, "device_id": None, **settings}
    return pipeline_def(graph, **settings)()


def feed(data=None):
    data = np.arange(4, dtype=np.int32) if data is None else data
    return fn.external_source(source=lambda: data)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("place", PLACES)
def test_exceptions_in_operators(declare, place, kind):
    faulty = declare(place, kind)
    pipe = build(lambda: faulty(feed()))
    with pytest.raises(BaseException) as caught:
        pipe.run()
    error = caught.value
    if place == "for_arguments" and not issubclass(kind, Exception):
        return  # raised in the user's own thread, it goes through
    assert isinstance(error, Exception)  # not what would end the program
    assert not isinstance(error, StopIteration)  # nor the epoch
    if kind in (ValueError, KeyError, OSError, AssertionError, UnicodeError, MemoryError):
        assert isinstance(error, kind)
    assert isinstance(error, errors.OperatorError)
    assert "fn.testing.faulty" in str(error)
    assert "test_faults.py" in str(error)
    assert isinstance(error.__cause__, kind)
    # The pipeline can still be asked, and says the same.
    with pytest.raises(type(error)):
        pipe.run()


@pytest.mark.sweep
@pytest.mark.parametrize("kind", [ValueError, StopIteration, SystemExit])
@pytest.mark.parametrize(
    "place", ["open", "list_entries", "infer", "draw", "fetch", "source", "state"]
)
def test_exceptions_in_readers(declare, place, kind):
    faulty = declare(place, kind, reader=True)
    pipe = build(lambda: faulty())
    opening = place in ("open", "list_entries")
    raised = SystemExit if opening and kind is SystemExit else Exception
    with pytest.raises(raised) as caught:
        pipe.run()
    assert not isinstance(caught.value, StopIteration)
    if raised is Exception:
        assert "fn.testing.faulty" in str(caught.value)


def test_a_failed_build_can_be_tried_again():
    fail = [True]
    pipe = build(feed, prefetch_queue_depth=1)
    original = threading.Thread.start

    def start(self):
        if fail and self.name.endswith("-1"):
            fail.clear()
            raise RuntimeError("can't start new thread")
        original(self)

    before = set(threading.enumerate())
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(threading.Thread, "start", start)
        with pytest.raises(RuntimeError, match="can't start"):
            pipe.run()
    started = set(threading.enumerate()) - before
    for thread in started:
        thread.join(60)
    assert not started & set(threading.enumerate())
    assert pipe.run()[0].as_array().tolist() == [0, 1, 2, 3]


@pytest.mark.sweep
@pytest.mark.parametrize("kind", [ValueError, OddError, SpeechlessError, KeyboardInterrupt])
@pytest.mark.parametrize("form", ["function", "samples", "iterable", "generator", "iter_setup"])
def test_exceptions_in_callbacks_pass_and_the_pipeline_goes_on(kind, form):
    fail = [True]
    error = raising(kind)

    def value(_=None):
        if fail.pop() if fail else False:
            raise error
        return np.zeros(4, np.int32)

    class Endless:
        def __iter__(self):
            return self

        def __next__(self):
            return value()

    class WithSetup(Pipeline):
        def iter_setup(self):
            self.feed_input("x", value())

    sources = {
        "function": lambda: fn.external_source(source=value),
        "samples": lambda: fn.external_source(source=lambda info: value()[0], batch=False),
        "iterable": lambda: fn.external_source(source=Endless()),
        "generator": lambda: fn.external_source(source=(value() for _ in range(9))),
        "iter_setup": lambda: fn.external_source(name="x"),
    }
    pipe = (WithSetup if form == "iter_setup" else Pipeline)(4, 1, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(sources[form]())
    with pytest.raises(kind) as caught:
        pipe.run()
    assert caught.value is error
    if form == "generator":  # a generator that raised is at its end, by Python's rules
        with pytest.raises(StopIteration):
            pipe.run()
    else:
        assert len(pipe.run()[0]) == 4


def test_fed_data_is_not_lost_when_a_source_raises():
    calls = []

    def source(index):
        calls.append(index)
        if len(calls) == 1:
            raise ValueError("on purpose")
        return np.zeros(1)

    pipe = Pipeline(1, 1, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(fn.external_source(name="x"), fn.external_source(source=source))
    pipe.feed_input("x", np.array([7]))
    with pytest.raises(ValueError, match="on purpose"):
        pipe.run()
    assert pipe.run()[0].as_array().tolist() == [7]


def test_exceptions_in_definitions_leave_nothing_behind():
    with pytest.raises(KeyError, match="mine"):
        build(lambda: {}["mine"])

    class Mine(Pipeline):
        def define_graph(self):
            raise KeyError("mine")

    with pytest.raises(KeyError, match="mine"):
        Mine(1, 1).run()
    assert Pipeline.current() is None


def test_sources_may_feed_other_sources():
    pipe = Pipeline(1, 1)

    def source(index):
        pipe.feed_input("fed", np.array([10 + index]))
        return np.array([index])

    with pipe:
        pipe.set_outputs(fn.external_source(source=source), fn.external_source(name="fed"))
    # The fed one starves until the other was asked, which is not asked while one starves.
    pipe.feed_input("fed", np.array([9]))
    assert [o.as_array().tolist() for o in pipe.run()] == [[0], [9]]
    assert [o.as_array().tolist() for o in pipe.run()] == [[1], [10]]


# -- deletion --------------------------------------------------------------------------------


class Gated(SampleOperator):
    """Waits for the test before it lets a sample through."""

    started = threading.Semaphore(0)
    let_go = threading.Event()

    def cpu(self, c, data):
        self.started.release()
        assert self.let_go.wait(60)
        return data


@pytest.fixture
def gated():
    Gated.started, Gated.let_go = threading.Semaphore(0), threading.Event()
    operator("testing.gated", inputs=Input("data"))(Gated)
    schema = registry.find("testing.gated")
    yield lambda data: headrace.api.functions.function_of(schema, "fn")(data)
    Gated.let_go.set()
    registry._schemas.pop("testing.gated")


def test_deleting_a_pipeline_with_work_in_flight(gated):
    before = set(threading.enumerate())
    pipe = build(lambda: gated(feed()))
    pipe.schedule_run()
    Gated.started.acquire()  # a worker is inside the operator now
    threads = set(threading.enumerate()) - before
    alive = weakref.ref(pipe)
    release = threading.Thread(target=Gated.let_go.set)
    release.start()
    del pipe
    release.join()
    for thread in threads:
        thread.join(PATIENCE_SECONDS)
    assert alive() is None
    assert not threads & set(threading.enumerate())


def test_deletion_does_not_wait_forever(gated):
    before = set(threading.enumerate())
    pipe = build(lambda: gated(feed()), num_threads=1)
    pipe.schedule_run()
    Gated.started.acquire()
    (worker,) = set(threading.enumerate()) - before
    del pipe  # though the operator goes on
    assert worker.is_alive()
    Gated.let_go.set()
    worker.join(PATIENCE_SECONDS)
    assert not worker.is_alive()


def test_waiting_for_a_pipeline_that_is_shut_down(gated):
    pipe = build(lambda: gated(feed()))
    pipe.schedule_run()
    Gated.started.acquire()
    executor = pipe._executor
    caught = []

    def consume():
        try:
            pipe.share_outputs()
        except Exception as error:
            caught.append(error)

    consumer = threading.Thread(target=consume)
    consumer.start()
    executor.shutdown(wait_seconds=0)
    consumer.join(PATIENCE_SECONDS)
    assert "shut down" in str(caught[0])


def by_method():
    class Mine(Pipeline):
        def values(self, index):
            return np.array([index, self.max_batch_size])

        def define_graph(self):
            return ops.ExternalSource(source=self.values)()

    return Mine(2, 2)


def by_closure():
    pipe = Pipeline(2, 2)
    with pipe:
        pipe.set_outputs(
            fn.external_source(source=lambda index: np.array([index, pipe.max_batch_size]))
        )
    return pipe


def by_holder():
    class TensorHandle:
        def values(self, index):
            return np.array([index, self.pipe.max_batch_size])

    holder = TensorHandle()
    holder.pipe = build(lambda: fn.external_source(source=holder.values) + 0, batch_size=2)
    return holder.pipe


def by_itself():
    pipe = build(lambda: fn.external_source(source=lambda index: np.array([index, 2])))
    pipe.itself = pipe
    return pipe


@pytest.mark.parametrize("make", [by_method, by_closure, by_holder, by_itself])
def test_a_pipeline_that_its_source_refers_to_can_be_deleted(make):
    before = set(threading.enumerate())
    pipe = make()
    assert pipe.run()[0].as_array().tolist() == [0, 2]
    pipe.run()
    threads = set(threading.enumerate()) - before
    assert len(threads) == 2
    alive = weakref.ref(pipe)
    del pipe
    # A thread that waits for a worker process holds what it works on until that has answered.
    wait_until(lambda: (gc.collect(), alive() is None)[1])
    assert not threads & set(threading.enumerate())


def test_outputs_outlive_their_pipeline():
    pipe = build(lambda: fn.copy(feed(np.arange(12, dtype=np.float32).reshape(4, 3))))
    out = pipe.run()[0]
    array = out.as_array()
    row = out[2]
    del pipe, out
    gc.collect()
    assert array[1].tolist() == [3, 4, 5]
    assert np.asarray(row).tolist() == [6, 7, 8]


def test_memory_of_outputs_is_used_again():
    pipe = build(lambda: fn.copy(feed(np.zeros((4, 1 << 16), np.uint8))), prefetch_queue_depth=1)
    addresses = set()
    for _ in range(50):
        addresses.add(pipe.run()[0].as_array().ctypes.data)
    assert len(addresses) < 10
    kept = [pipe.run() for _ in range(10)]
    assert len({k[0].as_array().ctypes.data for k in kept}) == 10
    processes = pipe._executor.processes
    pool = HOST_POOL if processes is None else processes.pool
    in_use = pool.stats().bytes_in_use
    del kept
    gc.collect()
    assert pool.stats().bytes_in_use <= in_use - 9 * (4 << 16)


def test_an_error_does_not_keep_the_batch_alive(declare):
    faulty = declare("third sample", ValueError)
    data = np.zeros((4, 1000))
    alive = weakref.ref(data)
    pipe = Pipeline(4, 1, prefetch_queue_depth=1)
    with pipe:
        pipe.set_outputs(faulty(fn.external_source(name="x", no_copy=True)))
    pipe.feed_input("x", data)
    with pytest.raises(ValueError, match="on purpose"):
        pipe.run()
    del data
    pipe = None
    patience = threading.Event()
    for _ in range(200):  # the worker may not have come back to its loop yet
        gc.collect()
        if alive() is None:
            break
        patience.wait(0.01)
    assert alive() is None


# -- threads ---------------------------------------------------------------------------------


def in_thread(function):
    """What `function` returns when another thread calls it."""
    result = []

    def call():
        try:
            result.append(function())
        except BaseException as error:
            result.append(error)

    thread = threading.Thread(target=call)
    thread.start()
    thread.join(60)
    (value,) = result
    if isinstance(value, BaseException):
        raise value
    return value


def counting():
    return build(
        lambda: fn.external_source(source=lambda i: np.full(4, i, np.int32)) * 2 + 1,
        prefetch_queue_depth=3,
    )


def first(outputs):
    return int(outputs[0].as_array()[0])


def test_a_pipeline_moves_from_thread_to_thread():
    pipe = in_thread(counting)
    got = [first(pipe.run()), in_thread(lambda: first(pipe.run())), first(pipe.run())]
    assert got == [1, 3, 5]
    made_here = counting()
    assert in_thread(lambda: [first(made_here.run()) for _ in range(3)]) == got
    assert in_thread(Pipeline.current) is None


def test_definitions_of_threads_do_not_meet():
    barrier = threading.Barrier(4)

    def define():
        pipe = Pipeline(4, 1)
        with pipe:
            barrier.wait(30)
            x = feed()
            barrier.wait(30)
            assert Pipeline.current() is pipe
            pipe.set_outputs(fn.copy(x) + 1)
        return first(pipe.run())

    results = []
    threads = [threading.Thread(target=lambda: results.append(define())) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [1] * 4


def test_many_pipelines_at_once():
    pipes = [counting() for _ in range(24)]
    for k in range(5):
        assert {first(pipe.run()) for pipe in pipes} == {2 * k + 1}
    results = []
    threads = [
        threading.Thread(target=lambda p=p: results.append([first(p.run()) for _ in range(20)]))
        for p in pipes[:8]
    ]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(60)
    assert results == [[2 * k + 1 for k in range(5, 25)]] * 8


def test_another_thread_feeds():
    pipe = Pipeline(1, 2)
    with pipe:
        pipe.set_outputs(fn.external_source(name="x", blocking=True) + 0)
    pipe.build()
    count = 200

    def feeder():
        for k in range(count):
            pipe.feed_input("x", np.array([k]))

    thread = threading.Thread(target=feeder)
    thread.start()
    got = [first(pipe.run()) for _ in range(count)]
    thread.join(60)
    assert got == list(range(count))


def test_blocking_waits_for_the_feed():
    for _ in range(50):  # neither waits for the other to begin: any order must do
        pipe = Pipeline(1, 1)
        with pipe:
            blocking = fn.external_source(name="x", blocking=True)
            pipe.set_outputs(blocking, fn.external_source(name="y", blocking=True))
        got = []
        consumer = threading.Thread(target=lambda p=pipe, g=got: g.append(first(p.run())))
        consumer.start()
        pipe.feed_input("x", np.array([5]))
        pipe.feed_input("y", np.array([6]))
        consumer.join(60)
        assert got == [5]


# -- processes -------------------------------------------------------------------------------

PROGRAM = """
import os, signal, sys, threading, time, traceback
import numpy as np
from headrace import Pipeline, fn, pipeline_def

@pipeline_def(batch_size=8, num_threads=3, device_id=None, prefetch_queue_depth=4)
def counting(source=lambda i: np.full((8, 1000), i, np.int32)):
    return fn.copy(fn.external_source(source=source)) * 2 + 1

def first(outputs):
    return int(outputs[0].as_array()[0, 0])
"""


def python(code, *, stdin=None):
    sources = os.pathsep.join(str(p / "src") for p in sorted((ROOT / "packages").iterdir()))
    return subprocess.run(
        [sys.executable, "-W", "error", "-c", PROGRAM + textwrap.dedent(code)],
        capture_output=True,
        text=True,
        check=False,
        timeout=120,
        env=os.environ | {"PYTHONPATH": sources},
        input=stdin,
    )


EXITS = {
    "at the end of the program": "pipe = counting(); pipe.run()",
    "without any run": "pipe = counting(); pipe.build()",
    "with outputs kept": "pipe = counting(); kept = [pipe.run() for _ in range(9)]",
    "with work in flight": "pipe = counting(); pipe.schedule_run()",
    "by sys.exit": "pipe = counting(); pipe.run(); sys.exit(0)",
    "many pipelines": "pipes = [counting() for _ in range(20)]; [p.run() for p in pipes]",
    "a cycle": "pipe = counting(); pipe.run(); pipe.itself = pipe; del pipe",
    "iterating in a daemon thread": """
        pipe = counting()
        begun = threading.Event()
        def consume():
            while True:
                pipe.run()
                begun.set()
        threading.Thread(target=consume, daemon=True).start()
        begun.wait()
    """,
    "waiting in a daemon thread": """
        pipe = Pipeline(1, 1)
        with pipe:
            pipe.set_outputs(fn.external_source(name="x", blocking=True))
        pipe.build()
        consumer = threading.Thread(target=pipe.run, daemon=True)
        consumer.start()
        calls = []
        while "wait" not in calls or "start" in calls:  # of other threads
            time.sleep(0.001)
            frames = traceback.walk_stack(sys._current_frames()[consumer.ident])
            calls = [frame.f_code.co_name for frame, _ in frames]
    """,
    "before connections to workers are closed": """
        import weakref
        class Connection: pass
        connection, pipe = Connection(), counting()
        pipe.run()
        monitor = pipe._executor.monitor
        weakref.finalize(connection, lambda: monitor.exiting or print("is still at work"))
    """,
    "an error kept": """
        pipe = counting(lambda i: [np.zeros(2), np.zeros((1, 1))])
        try:
            pipe.run()
        except ValueError as error:
            kept = error
    """,
}


@pytest.mark.parametrize(
    "case",
    always(
        "with outputs kept",
        "with work in flight",
        "iterating in a daemon thread",
        "waiting in a daemon thread",
        "an error kept",
        of=EXITS,
    ),
)
def test_exit_of_the_interpreter(case):
    done = python(EXITS[case])
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


INTERRUPTED = {
    "in the source": """
        def source(i):
            if i == 20:
                os.kill(os.getpid(), signal.SIGINT)
            return np.full((8, 1000), i, np.int32)
        pipe = counting(source)
        while True:
            pipe.run()
    """,
    "waiting for a batch": """
        import headrace.pipeline.pipeline as module
        from headrace.operators.support.operator import Operator, SampleOperator, operator
        from headrace.operators.support.schema import Input
        module.EXIT_SECONDS, home = 0.1, os.getpid()
        @operator("testing.stuck", inputs=Input("data"))
        class Stuck(SampleOperator):
            def cpu(self, c, data):
                os.kill(home, signal.SIGINT)  # the consumer waits for this sample
                threading.Event().wait()
        pipe = Pipeline(1, 1)
        with pipe:
            x = fn.external_source(source=lambda: np.zeros((1, 1)))
            pipe.set_outputs(fn.testing.stuck(x))
        pipe.run()
    """,
    "waiting for a feed": """
        pipe = Pipeline(1, 1)
        with pipe:
            pipe.set_outputs(fn.external_source(name="x", blocking=True))
        pipe.build()
        threading.Thread(target=os.kill, args=(os.getpid(), signal.SIGINT)).start()
        pipe.run()
    """,
    "between batches": """
        pipe = counting()
        for k in range(1000):
            pipe.run()
            if k == 10:
                signal.raise_signal(signal.SIGINT)
    """,
}


@pytest.mark.parametrize("case", always("in the source", "waiting for a feed", of=INTERRUPTED))
def test_keyboard_interrupt_ends_the_program(case):
    done = python(INTERRUPTED[case])
    assert done.returncode == -signal.SIGINT
    assert done.stderr.rstrip().endswith("KeyboardInterrupt")
    assert done.stderr.count("Traceback") == 1


def test_interrupted_and_continued():
    done = python("""
        interrupted, got = [], []
        def handler(*_):
            interrupted.append(1)
            raise KeyboardInterrupt
        signal.signal(signal.SIGINT, handler)
        def source(i):
            if i in (3, 9, 10) and len(interrupted) < 3:
                signal.raise_signal(signal.SIGINT)
            return np.full((8, 1000), i, np.int32)
        pipe = counting(source)
        while len(got) < 30:
            try:
                got.append(first(pipe.run()))
            except KeyboardInterrupt:
                pass
        assert len(interrupted) == 3, interrupted
        assert got == [2 * k + 1 for k in range(30)], got
    """)
    assert (done.returncode, done.stderr) == (0, "")


def test_an_operator_that_never_returns_does_not_keep_the_program():
    done = python("""
        import headrace.pipeline.pipeline as module
        from headrace.operators.support.operator import Operator, SampleOperator, operator
        from headrace.operators.support.schema import Input
        module.EXIT_SECONDS, home = 0.1, os.getpid()
        begun = threading.Event()
        @operator("testing.stuck", inputs=Input("data"))
        class Stuck(SampleOperator):
            def cpu(self, c, data):
                begun.set()
                threading.Event().wait()
        pipe = Pipeline(1, 1)
        with pipe:
            x = fn.external_source(source=lambda: np.zeros((1, 1)))
            pipe.set_outputs(fn.testing.stuck(x))
        pipe.schedule_run()
        begun.wait()
    """)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_a_fork_builds_its_own_pipeline():
    done = python("""
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)  # of forks in threaded programs
        pipe = counting()
        expected = [first(pipe.run()) for _ in range(3)]
        child = os.fork()
        if child == 0:
            mine = counting()
            assert [first(mine.run()) for _ in range(3)] == expected
            try:
                pipe.run()
            except RuntimeError as error:
                assert "another process" in str(error), error
            else:
                raise AssertionError("the parent's pipeline ran")
            del pipe
            sys.exit(7)
        _, status = os.waitpid(child, 0)
        assert os.waitstatus_to_exitcode(status) == 7, status
        assert first(pipe.run()) == 7
    """)
    assert (done.returncode, done.stderr) == (0, "")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork on this system")
def test_forks_of_a_busy_program():
    done = python("""
        import warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        pipe = counting()
        for k in range(3):
            pipe.run()
            child = os.fork()
            if child == 0:
                assert first(counting().run()) == 1
                sys.exit(3)
            _, status = os.waitpid(child, 0)
            assert os.waitstatus_to_exitcode(status) == 3, status
    """)
    assert (done.returncode, done.stderr) == (0, "")


def test_a_process_pool_forked_from_a_running_program():
    done = python("""
        import multiprocessing, warnings
        warnings.simplefilter("ignore", DeprecationWarning)
        pipe = counting()
        pipe.run()
        with multiprocessing.get_context("fork").Pool(2) as pool:
            assert pool.map(abs, [-1, -2]) == [1, 2]
        assert first(pipe.run()) == 3
    """)
    assert (done.returncode, done.stderr) == (0, "")
