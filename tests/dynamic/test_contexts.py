"""Contexts, threads, and how work is done."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace.errors import UsageError
from headrace.operators.support.operator import SampleOperator, operator
from headrace.operators.support.registry import _schemas
from headrace.operators.support.schema import Input

CALLS = []
GATE = threading.Event()


@pytest.fixture
def counted():
    """An operator that counts its samples, and one that waits for `GATE`."""

    @operator("test_counted", inputs=Input())
    class Counted(SampleOperator):
        """Counts."""

        def cpu(self, c, *inputs):
            CALLS.append(c.index)
            return inputs[0] * 2

    @operator("test_waiting", inputs=Input())
    class Waiting(SampleOperator):
        """Waits."""

        def cpu(self, c, *inputs):
            assert GATE.wait(20)
            return inputs[0] * 2

    CALLS.clear()
    GATE.clear()
    yield
    GATE.set()
    ndd.EvalContext.current().evaluate_all()
    for name in ("test_counted", "test_waiting"):
        _schemas.pop(name)
        vars(ndd).pop(name, None)


@pytest.mark.usefixtures("counted")
def test_deferred_work_is_done_when_somebody_looks_and_only_once():
    data = ndd.batch([1.0, 2.0])
    with ndd.EvalMode.deferred:
        used = ndd.test_counted(data)
        unused = ndd.test_counted(data)
        assert used.dtype == ndd.float32
        assert used.batch_size == 2
        more = used + 1
    assert not CALLS
    assert [t.item() for t in more.tensors] == [3.0, 5.0]
    assert [t.item() for t in used.tensors] == [2.0, 4.0]
    assert len(CALLS) == 2
    del unused


@pytest.mark.usefixtures("counted")
def test_eager_calls_return_before_the_work_is_done():
    data = ndd.batch([1.0, 2.0])
    result = ndd.test_waiting(data)
    more = result + 1  # does not wait either
    GATE.set()
    assert [t.item() for t in more.tensors] == [3.0, 5.0]


@pytest.mark.usefixtures("counted")
def test_what_nobody_holds_is_computed_but_not_kept():
    data = ndd.batch([1.0, 2.0])
    blocked = ndd.test_waiting(data)
    middle = ndd.test_counted(data)
    reference = middle._reference
    last = middle + 1
    del middle
    GATE.set()
    assert [t.item() for t in last.tensors] == [3.0, 5.0]
    assert [t.item() for t in blocked.tensors] == [2.0, 4.0]
    assert len(CALLS) == 2
    del reference


@pytest.mark.usefixtures("counted")
def test_a_sample_taken_of_a_result_outlives_it():
    blocked = ndd.test_waiting(ndd.batch([1.0, 2.0]))
    batch = ndd.test_counted(ndd.batch([3.0, 4.0]))
    sample = batch.tensors[1]
    part = batch.select([1])
    del batch
    GATE.set()
    assert sample.item() == 8.0
    assert part.tensors[0].item() == 8.0
    assert blocked.shape == [(), ()]


def test_memory_that_others_own_may_change_after_the_call():
    array = np.arange(5, dtype=np.float32)
    for mode in ndd.EvalMode:
        with mode:
            results = [ndd.as_tensor(array) * k for k in range(4)]
            batch = ndd.as_batch([array, array]) + 1
            before = array.copy()
            array += 1
            for k, result in enumerate(results):
                assert np.array_equal(np.asarray(result), before * k)
            assert np.array_equal(np.asarray(batch.tensors[1]), before + 1)


def test_contexts_nest_and_belong_to_one_thread():
    default = ndd.EvalContext.default()
    assert ndd.EvalContext.current() is default
    with ndd.EvalContext(num_threads=1) as context:
        assert ndd.EvalContext.current() is context
        with context:  # once more, in the same thread
            assert ndd.EvalContext.current() is context
        errors = []

        def other():
            assert ndd.EvalContext.current() is not default
            try:
                with context:
                    pass
            except UsageError as error:
                errors.append(error)

        thread = threading.Thread(target=other)
        thread.start()
        thread.join()
        assert len(errors) == 1
    assert ndd.EvalContext.current() is default


def test_end_of_a_context_finishes_its_work():
    with ndd.EvalContext(num_threads=2):
        results = [ndd.batch([float(k)] * 4) * 2 for k in range(50)]
    for k, result in enumerate(results):
        assert result._reference.value is not None
        assert result.tensors[0].item() == 2 * k


def test_number_of_threads(monkeypatch):
    monkeypatch.setenv("DALI_NUM_THREADS", "3")
    assert ndd.get_num_threads() == 3
    ndd.set_num_threads(5)
    try:
        assert ndd.get_num_threads() == 5
        assert ndd.EvalContext().num_threads == 5
        assert ndd.EvalContext(num_threads=2).num_threads == 2
    finally:
        ndd.set_num_threads(None)
    monkeypatch.setenv("DALI_NUM_THREADS", "many")
    with pytest.raises(ValueError, match="DALI_NUM_THREADS"):
        ndd.get_num_threads()


def chain(data, rng):
    x = ndd.cast(data, dtype=ndd.float32)
    x = x * ndd.random.uniform(range=[0.5, 1.5], batch_size=data.batch_size, rng=rng)
    return ndd.cast(x + 3, dtype=ndd.uint8)


@pytest.mark.parametrize("mode", list(ndd.EvalMode), ids=lambda m: m.name)
def test_threads_with_their_own_contexts_get_what_one_thread_gets(mode):
    draw = np.random.default_rng(3)
    samples = [draw.integers(0, 100, (30 + k, 8), dtype=np.uint8) for k in range(8)]

    def loop(seed):
        rng = ndd.random.RNG(seed)
        data = ndd.batch(samples)
        with mode:
            return [
                b"".join(np.asarray(t).tobytes() for t in chain(data, rng).tensors)
                for _ in range(10)
            ]

    want = [loop(seed) for seed in range(4)]
    got = [None] * 4

    def run(seed):
        with ndd.EvalContext(num_threads=2):
            got[seed] = loop(seed)

    threads = [threading.Thread(target=run, args=(seed,)) for seed in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert got == want


def test_one_thread_gives_what_many_give():
    results = []
    for count in (1, 2, 5):
        with ndd.EvalContext(num_threads=count):
            data = ndd.batch([np.arange(k + 1, dtype=np.uint8) for k in range(33)])
            result = chain(data, ndd.random.RNG(9))
            results.append([np.asarray(t).tolist() for t in result.tensors])
    assert results[0] == results[1] == results[2]


def test_results_pass_from_one_thread_to_another():
    found = []
    first = ndd.batch([np.ones(1000, np.float32)] * 4)

    def other(batch):
        with ndd.EvalMode.eager:
            found.append((batch * 2 + 1).evaluate())

    for _ in range(20):
        batch = first + 1
        thread = threading.Thread(target=other, args=(batch,))
        del batch
        thread.start()
        thread.join()
    assert all(np.asarray(b.tensors[3])[0] == 5 for b in found)


def test_more_calls_than_may_wait():
    x = ndd.batch([0.0] * 3)
    for _ in range(3000):
        x = x + 1
    assert x.tensors[0].item() == 3000


def test_pools_are_shared():
    pool = ndd.ThreadPool(2)
    contexts = [ndd.EvalContext(thread_pool=pool) for _ in range(2)]
    for context in contexts:
        with context:
            assert context.thread_pool is pool
            assert (ndd.batch([1.0, 2.0]) + 1).tensors[1].item() == 3.0


@pytest.mark.parametrize("keep", ["results = []", "results = None"])
def test_the_program_may_end_while_work_is_under_way(keep):
    program = f"""
import numpy as np
import headrace.experimental.dynamic as ndd
{keep}
data = ndd.batch([np.ones((700, 700, 3), np.float32)] * 8)
for _ in range(30):
    x = ndd.cast(data * 2 + 1, dtype=ndd.uint8)
    if results is not None:
        results.append(x)
"""
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", program], capture_output=True, timeout=100, text=True
    )
    assert (done.returncode, done.stderr) == (0, "")


def test_importing_the_package_does_not_import_dynamic_mode():
    program = "import headrace, sys; print('headrace.experimental.dynamic' in sys.modules)"
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert done.stdout.strip() == "False"


def test_an_interruption_is_no_error_of_a_call():
    @operator("test_interrupted", inputs=Input())
    class Interrupted(SampleOperator):
        """Is interrupted."""

        def cpu(self, c, *inputs):
            raise KeyboardInterrupt

    try:
        with ndd.EvalContext(num_threads=1):
            with ndd.EvalMode.deferred:
                result = ndd.test_interrupted(ndd.batch([1.0, 2.0]))
                more = result + 1
            with pytest.raises(KeyboardInterrupt):
                more.evaluate()
            with pytest.raises(RuntimeError, match="interrupted"):
                more.evaluate()
            assert (ndd.batch([1.0]) + 1).tensors[0].item() == 2.0
    finally:
        _schemas.pop("test_interrupted")
        vars(ndd).pop("test_interrupted", None)


def test_arguments_of_other_libraries_are_read_each_time():
    torch = pytest.importorskip("torch")
    x = ndd.tensor(np.zeros((2, 2), np.float32))
    mean = torch.ones(())
    first = ndd.normalize(x, mean=mean.reshape(1, 1), stddev=1.0)
    mean += 1
    second = ndd.normalize(x, mean=mean.reshape(1, 1), stddev=1.0)
    assert np.asarray(first)[0, 0] == -1
    assert np.asarray(second)[0, 0] == -2


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork here")
def test_a_fork_can_go_on():
    program = """
import gc
import os
import numpy as np
import headrace.experimental.dynamic as ndd
data = ndd.batch([np.ones((300, 300), np.float32)] * 8)
before = [data * k + 1 for k in range(30)]
child = os.fork()
if child == 0:
    try:
        for _ in range(3):
            result = ndd.cast(data * 2 + 1, dtype=ndd.uint8)
            assert np.asarray(result.tensors[7])[0, 0] == 3
        for k, batch in enumerate(before):
            try:
                assert np.asarray(batch.tensors[0])[0, 0] == k + 1
            except RuntimeError as error:
                assert "forked" in str(error), error
        os._exit(0)
    except BaseException as error:
        print(repr(error), flush=True)
        os._exit(1)
assert os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]) == 0
assert all(np.asarray(b.tensors[0])[0, 0] == k + 1 for k, b in enumerate(before))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, timeout=60)
    assert done.returncode == 0, done.stdout + done.stderr


def test_threads_end_with_those_who_needed_them():
    def work():
        result = ndd.batch([np.ones((200, 200), np.float32)] * 8) * 2 + 1
        for _ in range(8):  # with and without helpers
            (result * 2).evaluate()

    before = threading.active_count()
    for _ in range(10):
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()
    gc.collect()
    mine = [t for t in threading.enumerate() if t.name.startswith("headrace-")]
    for thread in mine[-20:]:
        thread.join(0.2)
    assert threading.active_count() <= before + 2
