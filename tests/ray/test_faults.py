"""Workers that are lost, come and go; bad samples; checkpoints."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import time
from pathlib import Path

import pytest

pytest.importorskip("ray")

import ray

from headrace import fn, pipeline_def
from headrace.errors import (
    ArgumentValueError,
    BadSampleError,
    CheckpointError,
    WorkerProcessError,
)
from headrace.plugin.pytorch import DALIGenericIterator
from headrace.plugin.ray import LastBatchPolicy, RayIterator
from tests.ray.iterators import (
    NAMES,
    SETTINGS,
    assert_same,
    epochs,
    kill,
    numbered,
    samples,
    started,
    values,
)
from tests.support.processes import wait_until

pytestmark = pytest.mark.usefixtures("cluster")

PARTIAL = {"reader_name": "reader", "last_batch_policy": LastBatchPolicy.PARTIAL}
SMALL = {**PARTIAL, "resources": {"num_cpus": 0.2}}


def test_killed_workers_cost_no_batch_and_repeat_none(images):
    expected = epochs(DALIGenericIterator(numbered(images), NAMES, **PARTIAL))
    iterator = RayIterator(numbered(images), NAMES, **SMALL, num_workers=2)
    found = []
    for _ in range(2):
        found.append([])
        for number, batch in enumerate(iterator):
            found[-1].append(values(batch))
            if number in (1, 4):
                kill(started(iterator)[0])
    assert_same(found, expected)
    assert iterator.statistics()[0]["ray_workers_lost"] >= 2
    assert all(worker.pid for worker in started(iterator, 1))


def test_lost_node_costs_no_batch(images, cluster):
    node = cluster.add_node(num_cpus=1, object_store_memory=80 << 20, resources={"third": 1})
    expected = epochs(DALIGenericIterator(numbered(images), NAMES, **PARTIAL))
    iterator = RayIterator(numbered(images), NAMES, **PARTIAL, num_workers=5)
    there = started(iterator, 5)
    assert len({worker.node_id for worker in there}) == 3
    assert sum(worker.is_local for worker in there) == 2  # the trainer's own node is full
    found = [[values(next(iterator))]]
    cluster.remove_node(node, allow_graceful=False)
    found[0] += [values(batch) for batch in iterator]
    found += epochs(iterator, 1)
    assert_same(found, expected)


def test_more_losses_than_allowed_name_node_and_cause(images):
    iterator = RayIterator(
        numbered(images), NAMES, **SMALL, num_workers=1, max_restarts=0, bytes_in_flight=1
    )
    (worker,) = started(iterator)
    kill(worker)
    with pytest.raises(WorkerProcessError) as caught:
        epochs(iterator, 3)
    text = str(caught.value)
    assert f"node {worker.address}" in text
    assert f"process {worker.pid}" in text
    assert "`max_restarts` is 0" in text
    assert "ActorDiedError" in text
    assert caught.value.__cause__ is not None


def test_an_iteration_that_ends_every_worker_is_an_error(images):
    @pipeline_def(batch_size=2, workers="processes", **SETTINGS)
    def deadly():
        _, labels = fn.readers.file(file_root=images, name="reader")
        return fn.python_function(labels, function=lambda x: os._exit(3) if x[0] == 1 else x)

    iterator = RayIterator(
        deadly(), ["x"], reader_name="reader", cut="outputs", prepare_first_batch=False
    )
    with pytest.raises(WorkerProcessError, match=r"Iteration \d+ has now cost 3 workers"):
        epochs(iterator, 1)


def broken(images, folder, count):
    """A copy of the images, some of which are broken."""
    for k, path in enumerate(sorted(images.glob("*/*.jpg"))):
        target = folder / path.parent.name / path.name
        target.parent.mkdir(exist_ok=True)
        data = path.read_bytes()
        target.write_bytes(data[:60] if k % (22 // count) == 3 else data)
    return folder


@pytest.mark.parametrize("kills", [False, True])
@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_bad_samples_are_as_without_a_cluster(images, tmp_path, policy, kills):
    root = broken(images, tmp_path, 5)
    make = lambda: numbered(root, on_bad_sample=policy)  # noqa: E731
    alone = make()
    expected = epochs(DALIGenericIterator(alone, NAMES, **PARTIAL))
    pipe = make()
    iterator = RayIterator(pipe, NAMES, **SMALL, num_workers=2)
    found = [[], []]
    for epoch in found:
        for number, batch in enumerate(iterator):
            epoch.append(values(batch))
            if kills and number == 2:
                kill(started(iterator)[0])
    assert_same(found, expected)
    taken = sum(map(len, expected))

    def told(pipe):
        return sorted(
            (bad.iteration, bad.index, bad.source, bad.reason)
            for bad in pipe.bad_samples
            if bad.iteration < taken
        )

    assert told(pipe) == told(alone)
    assert told(pipe)


@pytest.mark.parametrize("in_flight", [600, None], ids=["behind it", "no room"])
def test_who_waits_for_entries_lets_a_lost_iteration_go_first(images, tmp_path, in_flight):
    """The first iteration is lost with its worker while the only other one waits for its end."""
    (tmp_path / "images").mkdir()
    files = sorted(map(str, broken(images, tmp_path / "images", 5).glob("*/*.jpg")))
    files.sort(key=os.path.basename)
    may_go_on = tmp_path / "may_go_on"
    trainer = os.getpid()

    def wait(number):
        while number[0] == 0 and os.getpid() != trainer and not may_go_on.exists():
            time.sleep(0.01)
        return number

    @pipeline_def(batch_size=3, on_bad_sample="skip", **{**SETTINGS, "prefetch_queue_depth": 5})
    def definition(function):
        data, numbers = fn.readers.file(files=files, labels=list(range(len(files))), name="reader")
        numbers = fn.python_function(numbers, function=function)
        return fn.resize(fn.decoders.image(data), size=(6, 5)), numbers

    names = ["images", "numbers"]
    expected = epochs(DALIGenericIterator(definition(lambda x: x), names, **PARTIAL), 1)
    how = {**SMALL, "cut": "outputs", "prepare_first_batch": False}
    how["bytes_in_flight"] = in_flight  # two batches have 576
    iterator = RayIterator(definition(wait), names, **how, num_workers=2)
    found = []
    reader = threading.Thread(target=lambda: found.extend(epochs(iterator, 1)), daemon=True)
    reader.start()
    wait_until(lambda: (at := iterator._pipes[0]._elsewhere.executor) is not None and at.report)
    executor = iterator._executors()[0]
    with executor.changed:
        while not executor._refills:
            executor.changed.wait(0.2)
        fleet, oldest = executor.fleet, min(executor._tickets)
        (lost,) = [m for m in fleet.members.values() if oldest in m.assigned]
        (other,) = [m for m in fleet.members.values() if m is not lost]
        assert min(executor._refills) in other.assigned
        assert len(other.assigned) == (2 if in_flight is None else 1)
        fleet.wanted = 1  # or another worker would take the lost iteration
        fleet.lose(lost, RuntimeError("lost"))
        executor.go_on()
    may_go_on.touch()
    wait_until(lambda: not reader.is_alive())
    assert_same(found, expected)


def test_a_bad_sample_that_raises_is_named(images, tmp_path):
    root = broken(images, tmp_path, 2)
    iterator = RayIterator(numbered(root), NAMES, **SMALL, num_workers=2, prepare_first_batch=False)
    with pytest.raises(BadSampleError) as caught:
        epochs(iterator, 1)
    assert ".jpg" in str(caught.value)
    assert __file__.replace("test_faults", "iterators") in str(caught.value)


def test_unordered_epochs_have_each_sample_once_and_resume(images):
    make = lambda **more: numbered(images, enable_checkpointing=True, **more)  # noqa: E731
    how = {**SMALL, "ordered": False, "num_workers": 3}
    expected = epochs(DALIGenericIterator(make(), NAMES, **PARTIAL), 3)
    iterator = RayIterator(make(), NAMES, **how)
    first = epochs(iterator, 1)[0]
    assert samples(first) == samples(expected[0])
    assert [len(b[0]) for b in first] == [len(b[0]) for b in expected[0]]
    begun = []
    for number, batch in enumerate(iterator):
        begun.append(values(batch))
        if number == 0:
            kill(started(iterator)[0])
        if number == 3:
            break
    state = iterator.state_dict()
    for workers, ordered in [(1, True), (2, False)]:
        again = RayIterator(make(), NAMES, **{**how, "num_workers": workers, "ordered": ordered})
        again.load_state_dict(state)
        rest = [values(batch) for batch in again]
        assert samples(begun + rest) == samples(expected[1])
        assert samples([values(batch) for batch in again]) == samples(expected[2])


def test_handed_out_of_turn_can_not_go_on_without_a_cluster(images):
    make = lambda **more: numbered(images, enable_checkpointing=True, **more)  # noqa: E731
    iterator = RayIterator(make(), NAMES, **SMALL, ordered=False, num_workers=1)
    next(iterator)
    executor = iterator._executors()[0]
    executor._ahead.add(executor._place_of[id(executor._queue[0])] + 2)
    (data,) = iterator.checkpoints()
    with pytest.raises(CheckpointError, match="out of turn"):
        DALIGenericIterator(make(checkpoint=data), NAMES, **PARTIAL)


def test_checkpoints_go_on_with_any_number_of_workers_or_none(images):
    make = lambda **more: numbered(images, enable_checkpointing=True, **more)  # noqa: E731
    expected = epochs(DALIGenericIterator(make(), NAMES, **PARTIAL), 2)
    iterator = RayIterator(make(), NAMES, **SMALL, num_workers=3)
    begun = [values(next(iterator)) for _ in range(4)]
    assert_same([begun], [expected[0][:4]])
    (data,) = iterator.checkpoints()
    assert len(data) < 4000
    for again in (
        RayIterator(make(checkpoint=data), NAMES, **SMALL, num_workers=1),
        DALIGenericIterator(make(checkpoint=data), NAMES, **PARTIAL),
    ):
        assert_same(epochs(again), [expected[0][4:], expected[1]])


def test_workers_come_and_go_in_the_middle_of_an_epoch(images):
    expected = epochs(DALIGenericIterator(numbered(images), NAMES, **PARTIAL), 2)
    iterator = RayIterator(numbered(images), NAMES, **SMALL, num_workers=1)
    found = []
    for sizes in ([3, 1], [2, (1, 4)]):
        found.append([])
        for number, batch in enumerate(iterator):
            found[-1].append(values(batch))
            if number in (1, 4):
                iterator.resize(sizes[number == 4])
    assert_same(found, expected)
    with pytest.raises(ArgumentValueError, match="at least 1"):
        iterator.resize(0)


def test_restart_in_the_middle_drops_what_is_in_flight(images):
    alone = DALIGenericIterator(numbered(images), NAMES, **PARTIAL)
    iterator = RayIterator(numbered(images), NAMES, **SMALL, num_workers=2)
    for it in (alone, iterator):
        for number, _ in enumerate(it):
            if number == 2:
                break
    assert_same(epochs(iterator), epochs(alone))


def test_skipping_out_of_turn_is_refused(images):
    with pytest.raises(ArgumentValueError, match='on_bad_sample`="skip"'):
        RayIterator(numbered(images, on_bad_sample="skip"), NAMES, **SMALL, ordered=False)


def settled_store_bytes(wanted=0):
    """Bytes in the object store, once there are not more than `wanted`, or after a while."""
    from ray._private.internal_api import get_memory_info_reply, get_state_from_address

    gc.collect()
    for _ in range(100):
        address = ray.get_runtime_context().gcs_address
        reply = get_memory_info_reply(get_state_from_address(address))
        used = reply.store_stats.object_store_bytes_used
        if used <= wanted:
            break
        threading.Event().wait(0.1)
    return used


def test_slow_consumers_fill_no_store_and_nothing_is_left(images):
    before = settled_store_bytes()
    pipe = numbered(images)
    iterator = RayIterator(pipe, NAMES, **SMALL, num_workers=3, bytes_in_flight=2500)
    executor = iterator._executors()[0]
    most = 0
    for _ in range(2):
        for _ in iterator:
            with executor.changed:
                executor.changed.wait(0.02)
                waiting = len(executor._arrived) + len(executor._forwarded)
                there = executor.fleet.in_hand() + waiting
                most = max(most, there * executor._bytes_each)
    assert executor._bytes_each > 1000
    assert 0 < most <= executor._limit
    del iterator, executor, pipe
    assert settled_store_bytes(before) <= before


def _program_beside(cluster, program):
    """A program, run on the cluster of the tests."""
    root = Path(__file__).parents[2]
    paths = os.pathsep.join([str(root), *sys.path])
    address = {"RAY_ADDRESS": cluster.address, "PYTHONPATH": paths}
    return subprocess.run(
        [sys.executable, program], capture_output=True, text=True, env={**os.environ, **address}
    )


def test_the_end_of_ray_is_an_error_and_starts_none(tmp_path, images, cluster):
    """In a program of its own, which leaves the cluster of the tests."""
    program = tmp_path / "program.py"
    program.write_text(f"""
import pathlib, ray
from headrace.plugin.ray import RayIterator
from headrace.plugin.ray.ending import CALLS
from tests.ray.iterators import NAMES, numbered
ray.init(log_to_driver=False)
root = pathlib.Path({str(images)!r})
iterator = RayIterator(numbered(root), NAMES, reader_name="reader", num_workers=2)
next(iterator)
ray.shutdown()
print(CALLS.number)
try:
    while True:
        next(iterator)
except RuntimeError as error:
    print(type(error).__name__, error)
print(ray.is_initialized())
""")
    done = _program_beside(cluster, program)
    assert done.returncode == 0, done.stderr
    said = done.stdout.splitlines()[-3:]
    assert said == [
        "0",  # Ray ends the process where a thread is in a call
        "WorkerProcessError Ray was shut down, and the pipeline's workers and data with it.",
        "False",
    ]


def test_the_end_of_ray_waits_for_blocks(tmp_path, cluster):
    """Threads that read blocks are in calls when Ray is shut down; none is started again."""
    program = tmp_path / "program.py"
    program.write_text("""
import ray, threading
from headrace import fn, pipeline_def
from headrace.plugin.ray import ending
ray.init(log_to_driver=False)
data = ray.data.range(8, override_num_blocks=8).materialize()

@pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
def definition():
    return fn.readers.ray(dataset=data, columns="id")

pipe = definition()
pipe.build()
get, inside, may_go = ray.get, threading.Event(), threading.Event()

def slow_get(*args):
    inside.set()
    may_go.wait()
    return get(*args)

ray.get = slow_get
pipe.schedule_run()
inside.wait()
threading.Timer(0.2, may_go.set).start()
ray.shutdown()
print(ending.CALLS.number)
try:
    while True:
        pipe.share_outputs()
        pipe.release_outputs()
        pipe.schedule_run()
except RuntimeError as error:
    print(type(error).__name__, str(error).splitlines()[0])
print(ray.is_initialized())
""")
    done = _program_beside(cluster, program)
    assert done.returncode == 0, done.stderr
    number, error, is_there = done.stdout.splitlines()[-3:]
    assert (number, is_there) == ("0", "False")
    assert "Ray was shut down" in error
