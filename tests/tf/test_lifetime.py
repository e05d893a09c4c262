"""Errors, the end of iterators, datasets and programs, and what is left behind."""

from __future__ import annotations

import gc
import os
import signal
import subprocess
import sys
import threading

import numpy as np
import pytest
import tensorflow as tf

from headrace import Pipeline, errors, fn
from headrace.plugin.tf import DALIDataset
from headrace.tensors.pool import HOST_POOL
from tests.e2e.support import REPOSITORY
from tests.jax.pipelines import file_pipeline
from tests.support.processes import wait_until


def failing_pipeline(good):
    """A pipeline that fails in each batch behind so many."""
    pipe = Pipeline(2, 1, None)
    with pipe:
        data = fn.external_source(
            source=[np.ones((2, 3 if k < good else 5), np.float32) for k in range(good + 2)]
        )
        pipe.set_outputs(fn.reshape(data, shape=[3]), fn.zeros(shape=[1]))
    return pipe


def test_an_error_of_the_pipeline_is_that_of_fit():
    model = tf.keras.Sequential([tf.keras.Input([3]), tf.keras.layers.Dense(1)])
    model.compile("sgd", "mse")
    ds = DALIDataset(failing_pipeline(2), batch_size=2, device_id=None)
    with pytest.raises(tf.errors.InvalidArgumentError) as caught:
        model.fit(ds.prefetch(2), shuffle=False, verbose=0)
    line = f"{__file__}:{failing_pipeline.__code__.co_firstlineno + 7}"
    for part in ("ShapeError: ", "Data of shape (5,)", "`fn.reshape`, at sample 0", line):
        assert part in str(caught.value)


def test_an_iterator_goes_on_behind_an_error():
    ds = DALIDataset(failing_pipeline(1), batch_size=2, device_id=None)
    assert len(list(ds.ignore_errors())) == 1
    iterator = iter(ds)
    next(iterator)
    for _ in range(2):
        with pytest.raises(tf.errors.InvalidArgumentError, match=r"fn\.reshape"):
            next(iterator)
    with pytest.raises(StopIteration):
        next(iterator)


def test_errors_by_class():
    """The class of TensorFlow's error follows from what the class of Python's is."""

    def of(error):
        def source():
            raise error

        pipe = Pipeline(2, 1, None)
        with pipe:
            pipe.set_outputs(fn.external_source(source=source, batch=True))
        iterator = iter(DALIDataset(pipe, tf.int32, ((2,),), batch_size=2, device_id=None))
        with pytest.raises(tf.errors.OpError, match=f"{type(error).__name__}: mine") as caught:
            next(iterator)
        return type(caught.value)

    assert of(ValueError("mine")) is of(TypeError("mine")) is tf.errors.InvalidArgumentError
    assert of(MemoryError("mine")) is tf.errors.ResourceExhaustedError
    assert of(NotImplementedError("mine")) is tf.errors.UnimplementedError
    assert of(OSError("mine")) is of(RuntimeError("mine")) is tf.errors.UnknownError


THREADS = """
import gc, sys, threading, weakref
import numpy as np
import tensorflow as tf
from headrace.plugin.tf import DALIDataset
from tests.jax.pipelines import file_pipeline
from tests.support.processes import wait_until

def threads():
    # What its own threads let go of, TensorFlow releases when it calls Python the next time.
    tf.numpy_function(lambda: np.float32(1), [], tf.float32)
    gc.collect()
    return len([t for t in threading.enumerate() if t.name.startswith("headrace")])

def dataset():
    return DALIDataset(file_pipeline(sys.argv[1:]), batch_size=4, device_id=None)

ds = dataset()
iterators = [iter(ds) for _ in range(3)]
for iterator in iterators:
    next(iterator)
many = threads()
del iterator, iterators[1:]
wait_until(lambda: 0 < threads() < many)
next(iterators[0])
del iterators, ds
wait_until(lambda: not threads())
for _ in range(5):  # iterators that are left before their end do not pile up
    for _ in dataset().prefetch(1):
        break
wait_until(lambda: not threads())
# What an ended epoch leaves for the next one goes with the dataset, as does a first batch.
ended = DALIDataset(
    file_pipeline(sys.argv[1:]), batch_size=4, device_id=None, reader_name="reader"
)
assert len(list(ended)) == 6 and threads()
steppers = [weakref.ref(ended._stepper)]
del ended
wait_until(lambda: not threads())
never_iterated = dataset()
assert threads()
steppers.append(weakref.ref(never_iterated._stepper))
del never_iterated
wait_until(lambda: not threads())
# Iterators, other datasets and functions keep what they need.
mapped = iter(dataset().map(lambda *parts: parts[1]).prefetch(2))
gc.collect()
assert [int(next(mapped)[0, 0]) for _ in range(3)] == [0, 4, 8]
nested = tf.data.Dataset.range(2).flat_map(lambda _: dataset().take(2))
gc.collect()
assert [int(label[0, 0]) for _, label in nested] == [0, 4, 0, 4]
assert [step() for step in steppers] == [None, None]
print("none are left")
"""


def run(program, *arguments):
    done = subprocess.run(
        [sys.executable, "-c", program, *arguments],
        cwd=REPOSITORY,
        capture_output=True,
        text=True,
        timeout=200,
        check=False,
    )
    assert done.returncode == 0, done.stderr
    assert "Error" not in done.stderr
    return done.stdout


def test_threads_end_with_iterators_and_datasets(files):
    """In a process of its own, where nothing else keeps what TensorFlow made."""
    assert "none are left" in run(THREADS, *files)


def test_nothing_grows_over_2000_batches():
    pipe = Pipeline(2, 1, None, enable_checkpointing=True)
    with pipe:
        number = fn.external_source(
            source=lambda n: np.full((2, 1), n.iteration, np.int32), batch_info=True
        )
        pipe.set_outputs(fn.cat(*[number] * 64, axis=0))
    ds = DALIDataset(pipe, batch_size=2, device_id=None)
    iterator = iter(ds)

    def grown(steps):
        for _ in range(steps):
            last = next(iterator)
        del last
        gc.collect()
        return (
            len(gc.get_objects()),
            HOST_POOL.stats().bytes_in_use + HOST_POOL.stats().bytes_idle,
            len(ds._stepper._by_key),
            # Threads of TensorFlow's pools count as "dummies" from their first call of Python on.
            sum(not t.name.startswith("Dummy-") for t in threading.enumerate()),
        )

    grown(200)
    objects, memory, sessions, running = grown(100)
    assert sessions == 1
    grown(2000)

    seen = []

    def is_as_before():
        # Threads of TensorFlow let go of what they had when they come to it, and a thread that
        # looked on while kernels were compiled has ended since.
        seen[:] = now = grown(1)
        return (
            now[0] < objects + 500
            and now[1] <= memory + 2**20
            and now[2] == sessions
            and now[3] <= running
        )

    wait_until(is_as_before, lambda: f"{seen} after {[objects, memory, sessions, running]}")


PROGRAM = """
import numpy as np
import tensorflow as tf
from headrace import fn, Pipeline
from headrace.plugin.tf import DALIDataset
pipe = Pipeline(2, 1, None)
with pipe:
    pipe.set_outputs(fn.external_source(source=lambda: np.ones((2, 3), np.float32)))
iterator = iter(DALIDataset(pipe, batch_size=2, device_id=None).prefetch(2))
next(iterator)
{more}
print("end", flush=True)
"""


@pytest.mark.parametrize("more", ["", "raise SystemExit(0)"])
def test_a_program_ends_while_its_iterators_live(more):
    """With `from_generator` it hangs here: a thread of TensorFlow calls Python, which is gone."""
    run(PROGRAM.format(more=more))


def test_forked_processes_are_told(files):
    """A new iterator over the dataset, and one over a dataset made of it."""
    ds = DALIDataset(file_pipeline(files), batch_size=4, device_id=None)
    mapped = ds.map(lambda *parts: parts)
    for use in (lambda: iter(ds), lambda: next(iter(mapped))):
        read, write = os.pipe()
        child = os.fork()
        if child == 0:
            signal.alarm(60)  # if it hangs
            try:
                use()
            except (errors.UsageError, tf.errors.OpError) as error:
                os.write(write, str(error).encode())
            finally:
                os._exit(0)
        os.waitpid(child, 0)
        os.close(write)
        with os.fdopen(read) as answer:
            assert "was forked" in answer.read()
