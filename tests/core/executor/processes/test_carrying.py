"""Worker processes make the same bytes as threads, and tell of the same errors."""

from __future__ import annotations

import itertools
import os
import threading
import time
from types import SimpleNamespace

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from headrace.executor.plan import batches_for_processes
from headrace.executor.processes.inputs import WorkerInput
from headrace.executor.processes.remote import RemoteRunner
from headrace.operators import Arg, Input, Spec, operator
from headrace.operators.support.argument_types import ObjectArg
from headrace.operators.support.registry import find
from tests.support.images import class_folders, encoded, picture
from tests.support.processes import wait_until
from tests.support.speech import CLIPS
from tests.support.speech import encoded as encoded_clip

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")


def built(graph, workers, **options):
    """A pipeline that returns what `graph` returns."""
    options = {"batch_size": 7, "num_threads": 2, "device_id": None, "seed": 12} | options

    @pipeline_def(workers=workers, **options)
    def p():
        return graph()

    pipe = p()
    pipe.build()
    statistics = pipe.executor_statistics()
    assert statistics["workers"] == workers, statistics["why_threads"]
    return pipe


def batches(pipe, iterations=3):
    """All samples of all outputs, with layouts and sources."""
    found = []
    for _ in range(iterations):
        for output in pipe.run():
            sources = [sample.source_info() for sample in output]
            found += [
                (np.array(s), output.layout(), i) for s, i in zip(output, sources, strict=True)
            ]
    return found


def check_same(graph, iterations=3, **options):
    """Compare threads with processes; return the pipeline of the latter."""
    expected = batches(built(graph, "threads", **options), iterations)
    pipe = built(graph, "processes", **options)
    for (a, *others), (b, *found) in zip(expected, batches(pipe, iterations), strict=True):
        np.testing.assert_array_equal(a, b)
        assert a.dtype == b.dtype
        assert others == found
    return pipe


def ragged(dtype=np.uint8, count=7):
    return [picture(30 + 5 * k, 70 - 3 * (k % 20), seed=k).astype(dtype) for k in range(count)]


def test_ragged_samples_and_draws():
    data = ragged()

    def graph():
        x = fn.external_source(source=lambda: data, layout="HWC")
        turned = fn.rotate(x, angle=fn.random.uniform(range=(-40, 40)))
        return turned, fn.resize(x, resize_shorter=fn.random.uniform(range=(10, 40))), x

    check_same(graph)


def test_samples_that_have_one_shape_only_at_times():
    shapes = [(4, 5), (4, 5), (6, 3), (4, 5)]
    fed = iter([np.full((7, *shape), k, np.int16) for k, shape in enumerate(shapes)] * 2)

    def graph():
        x = fn.external_source(source=lambda: next(fed))
        return x + 1, fn.reshape(x, shape=[-1])

    check_same(graph, iterations=4, prefetch_queue_depth=1, exec_async=False, exec_pipelined=False)


def test_one_sample_of_another_shape():
    data = [np.zeros((4, 4), np.float32)] * 6 + [np.ones((9, 2), np.float32)]
    same = [np.zeros((4, 4), np.float32)] * 7
    fed = iter([same, data, same, data] * 2)

    def graph():
        return fn.external_source(source=lambda: next(fed)) * 2.0

    check_same(graph, iterations=4, prefetch_queue_depth=1, exec_async=False, exec_pipelined=False)


def test_empty_samples():
    data = [np.zeros((0, 3), np.uint8), np.ones((2, 3), np.uint8)] * 3 + [np.ones((1, 3), np.uint8)]
    large = [np.ones((0, 30, 40), np.uint8), *[np.ones((k, 30, 40), np.uint8) for k in range(6)]]

    def graph():
        x = fn.external_source(source=lambda: large)
        return fn.external_source(source=lambda: data) + 1, (x + 1) * 2

    check_same(graph)


def fed_in_place():
    """Samples that workers read where the source has them: ragged, dense and dense with gaps."""
    rows = [np.full((0, 3) if k == 2 else (40 + k, 50), k, np.float32) for k in range(7)]
    dense = np.arange(7 * 40 * 50, dtype=np.int32).reshape(7, 40, 50)

    def graph():
        x = fn.external_source(source=lambda: rows, no_copy=True)
        y = fn.external_source(source=lambda: dense, no_copy=True)
        z = fn.external_source(source=lambda: dense[:, ::2], no_copy=True)
        return x + 1, y * 2, z - 3

    return graph


def test_workers_read_memory_of_the_program_where_they_may(monkeypatch):
    graph = fed_in_place()
    copied = []
    monkeypatch.setattr(
        "headrace.executor.processes.inputs.copy_pieces", lambda *pieces: copied.append(pieces)
    )
    pipe = check_same(graph, batch_size=7)
    if pipe._engine.executor.processes.copies_inputs:
        pytest.skip("the system does not let them")
    assert not copied


def test_workers_get_copies_where_they_may_not_read_memory_of_the_program(monkeypatch):
    whole, nobody = WorkerInput.whole, (1 << 22) + 1  # no system has so many processes

    def elsewhere(self):
        told = whole(self)
        return told._replace(process=told.process and nobody)

    monkeypatch.setattr(WorkerInput, "whole", elsewhere)
    pipe = check_same(fed_in_place(), iterations=6)
    assert pipe._engine.executor.processes.copies_inputs


def test_batches_all_of_whose_samples_are_empty():
    data = [np.zeros((k, 0, 3), np.float32) for k in range(7)]
    same = np.zeros((7, 0), np.int64)

    def graph():
        x = fn.external_source(source=lambda: data)
        y = fn.external_source(source=lambda: same)
        return x + 1, fn.cast(x, dtype=types.INT32), y * 2, x

    check_same(graph)


def test_a_reader_with_labels(tmp_path):
    class_folders(tmp_path, 11)

    def graph():
        jpegs, labels = fn.readers.file(file_root=str(tmp_path), random_shuffle=True)
        image = fn.decoders.image_random_crop(jpegs)
        image = fn.resize(image, size=(24, 20))
        return (
            fn.crop_mirror_normalize(image, dtype=types.FLOAT, mirror=fn.random.coin_flip()),
            labels,
            jpegs,
            fn.peek_image_shape(jpegs),
        )

    check_same(graph, iterations=5)


def test_small_batches_are_begun_earlier_and_nothing_else_changes(tmp_path):
    class_folders(tmp_path, 23)

    def graph():
        jpegs, labels = fn.readers.file(file_root=str(tmp_path), random_shuffle=True)
        image = fn.resize(fn.decoders.image(jpegs), size=(8, 8))
        return image + fn.random.uniform(range=(0, 9), dtype=types.UINT8), labels

    options = {"num_threads": 4, "enable_checkpointing": True, "batch_size": 5}
    pipe = check_same(graph, **options)
    assert pipe._executor.pending() >= 5
    expected = built(graph, "threads", **options)
    assert batches(expected, 3)
    assert expected._executor.pending() <= 2
    checkpoint = pipe.checkpoint()
    assert checkpoint == expected.checkpoint()
    rest = batches(expected, 6)
    for found in (
        batches(pipe, 6),
        batches(built(graph, "processes", checkpoint=checkpoint, **options), 6),
    ):
        for (a, *_), (b, *_) in zip(rest, found, strict=True):
            np.testing.assert_array_equal(a, b)


def test_what_is_begun_early_was_not_asked_for(tmp_path):
    for k in range(12):
        np.save(tmp_path / f"{k:02}.npy", np.full(2, k))

    @pipeline_def(batch_size=2, num_threads=4, device_id=None, workers="processes")
    def read():
        return fn.readers.numpy(file_root=str(tmp_path)) + 0

    pipe = read()
    with pytest.raises(StopIteration):
        pipe.share_outputs()
    for expected in ([0, 2], [4]):
        pipe.schedule_run()
        found = []
        while not pipe.empty():
            found.append(pipe.outputs()[0].as_array()[0, 0])
        assert found == expected
        assert pipe._executor.pending() > 2
        with pytest.raises(StopIteration):
            pipe.share_outputs()
    pipe.reset()
    pipe.schedule_run()
    assert pipe.share_outputs()[0].as_array()[0, 0] == 6


@pytest.mark.parametrize(
    ("processes", "batch_size", "depth", "expected"),
    [(16, 64, 2, 46), (16, 2048, 2, 0), (16, 128, 2, 22), (16, 1, 5, 115), (2, 8, 2, 6)],
)
def test_how_many_batches_are_begun_earlier(processes, batch_size, depth, expected):
    plan = SimpleNamespace(fed_nodes=[], streams={"gpu"}, nodes=[])
    assert batches_for_processes(plan, 4, 64, 2) == 10
    assert batches_for_processes(plan, 2, 64, 2) == 4
    plan.streams = set()
    assert batches_for_processes(plan, 2, 64, 2) == 0
    assert batches_for_processes(plan, processes, batch_size, depth) == expected
    plan.nodes = [SimpleNamespace(schema=find("python_function"))]
    assert batches_for_processes(plan, processes, batch_size, depth) == 0
    plan.nodes = []
    plan.fed_nodes = ["a source is not asked for more"]
    assert batches_for_processes(plan, processes, batch_size, depth) == 0


def test_a_process_has_its_next_samples_while_it_is_at_some(monkeypatch):
    behind = []
    send = RemoteRunner.send

    def noted(self, iteration, indices, ahead=None, **options):
        behind.append(ahead is not None)
        return send(self, iteration, indices, ahead, **options)

    monkeypatch.setattr(RemoteRunner, "send", noted)
    data = ragged(count=40)  # several chunks a batch

    def graph():
        rows = fn.external_source(source=lambda: data, batch=True)
        # Of several sizes each time: a worker asks for more room with another task waiting.
        return fn.resize(rows, size=fn.random.uniform(range=(8, 90), shape=2)), rows + 1

    check_same(graph, num_threads=1, batch_size=40)
    assert any(behind)


def test_a_batch_that_comes_while_a_process_is_busy_is_sent_to_another_one(monkeypatch):
    told = []
    send, receive = RemoteRunner.send, RemoteRunner.receive

    def noted_send(self, iteration, *args, **options):
        told.append(("sent", iteration.number))
        return send(self, iteration, *args, **options)

    def noted_receive(self, sent):
        found = receive(self, sent)
        told.append(("received", sent.iteration.number))
        return found

    monkeypatch.setattr(RemoteRunner, "send", noted_send)
    monkeypatch.setattr(RemoteRunner, "receive", noted_receive)

    @operator("carrying_slow", inputs=Input())
    def carrying_slow(xp, x):
        """As it is, after a while."""
        time.sleep(0.03)
        return x

    def graph():
        return fn.carrying_slow(fn.external_source(source=lambda: np.zeros((8, 600)), batch=True))

    pipe = built(graph, "processes", batch_size=8, prefetch_queue_depth=2)
    for _ in range(18):  # each batch is one chunk, once it is known what that takes
        pipe.run()
    numbers = range(10, 16)
    early = [told.index(("sent", n + 2)) < told.index(("received", n + 1)) for n in numbers]
    # Where two batches are done at the same time, the second of them is received first.
    assert sum(early) >= len(early) / 2, told
    # Threads that do not wait for processes any more are not woken in place of those that do.
    wait_until(lambda: not any(i.is_busy for i in pipe._executor.scheduled()))
    wait_until(lambda: not pipe._executor._schedule.monitor.dispatchers)


def test_processes_that_are_busy_are_sent_samples_as_soon_as_these_come(monkeypatch, tmp_path):
    sent = []
    send = RemoteRunner.send

    def noted(self, iteration, *args, **options):
        found = send(self, iteration, *args, **options)
        sent.append(iteration.number)
        return found

    monkeypatch.setattr(RemoteRunner, "send", noted)
    monkeypatch.setattr("headrace.executor.cpu.tasks.chunk_size", lambda *_: 4)
    folder = str(tmp_path)

    @operator("carrying_gated", inputs=Input())
    def carrying_gated(xp, x):
        """As it is, once there is a file of its number."""
        while not os.path.exists(f"{folder}/{int(x[0])}"):
            time.sleep(0.002)
        return x

    def open_gates(*numbers):
        for number in numbers:
            (tmp_path / str(number)).touch()

    numbers = itertools.count()

    def graph():
        return fn.carrying_gated(fn.external_source(source=lambda: np.full((12, 1), next(numbers))))

    open_gates(*range(4))
    pipe = built(graph, "processes", batch_size=12, num_threads=2, prefetch_queue_depth=2)
    pipe.schedule_run()
    for number in range(4):
        pipe.share_outputs()
        pipe.release_outputs()
        if number == 3:
            wait_until(lambda: sent.count(4) == 3)  # a process has one of these, the other two
        pipe.schedule_run()
    try:
        wait_until(lambda: 5 in sent)
        assert sent.count(4) == 3
    finally:
        open_gates(*range(4, 9))
    for number in (4, 5):
        (found,) = pipe.share_outputs()
        np.testing.assert_array_equal(found.as_array(), np.full((12, 1), number))
        pipe.release_outputs()


def test_operators_of_whole_batches_between_two_stages():
    data = ragged(np.float32)

    def graph():
        x = fn.external_source(source=lambda: data, layout="HWC")
        x = fn.resize(x, size=(16, 12))
        x = fn.normalize(x, batch=True)
        return fn.crop(x, crop=(9, 7)), x

    check_same(graph)


def test_views_of_fed_data_and_constants():
    data = np.arange(7 * 6, dtype=np.int32).reshape(7, 6)

    def graph():
        x = fn.external_source(source=lambda: data)
        return fn.reshape(x, shape=[2, 3]), x + types.Constant(5), fn.cast(x, dtype=types.FLOAT)

    check_same(graph)


def test_audio():
    clips = [encoded_clip(CLIPS[k % len(CLIPS)]) for k in range(7)]

    def graph():
        x, _ = fn.decoders.audio(
            fn.external_source(source=lambda: clips), dtype=types.FLOAT, downmix=True
        )
        spectrum = fn.spectrogram(x, nfft=256, window_length=200, window_step=80)
        mel = fn.mel_filter_bank(spectrum, nfilter=20, sample_rate=16000.0)
        begin, length = fn.nonsilent_region(x)
        return fn.to_decibels(mel), begin, length

    check_same(graph)


def test_sequences_with_arguments_for_each_frame():
    data = [np.stack(ragged(count=1) * (2 + k)) for k in range(7)]
    angles = [np.linspace(0, 30, 2 + k, dtype=np.float32) for k in range(7)]

    def graph():
        x = fn.external_source(source=lambda: data, layout="FHWC")
        angle = fn.external_source(source=lambda: angles, layout="F")
        return fn.rotate(x, angle=fn.per_frame(angle), size=(30, 30))

    check_same(graph)


def test_without_fusion():
    data = [encoded(40, 50, seed=k) for k in range(7)]

    def graph():
        x = fn.decoders.image(fn.external_source(source=lambda: data))
        return fn.flip(fn.crop(x, crop=(20, 20)), horizontal=1)

    check_same(graph, fuse=False)


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_bad_samples_are_reported_as_by_threads(tmp_path, policy):
    class_folders(tmp_path, 9)
    bad = sorted(tmp_path.glob("*/*.jpg"))[4]
    bad.write_bytes(bad.read_bytes()[:100])

    def graph():
        jpegs, labels = fn.readers.file(file_root=str(tmp_path))
        return fn.resize(fn.decoders.image(jpegs), size=(8, 8)), labels

    options = {"on_bad_sample": policy, "batch_size": 4}
    pipe = check_same(graph, iterations=4, **options)
    expected = built(graph, "threads", **options)
    batches(expected, 4)
    assert pipe.bad_samples[:1] == expected.bad_samples[:1] != []


def test_an_error_names_operator_sample_file_and_line(tmp_path):
    class_folders(tmp_path, 4)
    bad = sorted(tmp_path.glob("*/*.jpg"))[2]
    bad.write_bytes(b"not a picture")

    def graph():
        jpegs, _ = fn.readers.file(file_root=str(tmp_path))
        return fn.decoders.image(jpegs)

    errors = []
    for workers in ("threads", "processes"):
        pipe = built(graph, workers, batch_size=4)
        with pytest.raises(RuntimeError) as caught:
            pipe.run()
        errors.append(caught.value)
    assert str(errors[0]) == str(errors[1])
    assert type(errors[0]) is type(errors[1])
    assert bad.name in str(errors[1])
    assert "in graph" in str(errors[1])


# -- operators of users ----------------------------------------------------------------------------


def test_an_operator_of_the_user_travels_by_value():
    @operator("testing.processes_add", inputs=Input(), args=[Arg("what", ObjectArg, None, "")])
    def add(xp, x, what):
        return x + xp.int32(what["by"] + (os.getpid() != first))

    first = os.getpid()
    pipe = built(
        lambda: fn.testing.processes_add(
            fn.external_source(lambda: [np.int32(3)] * 7), what={"by": 4}
        ),
        "processes",
    )
    assert [int(np.array(s)) for s in pipe.run()[0]] == [8] * 7


def test_an_operator_that_was_declared_without_a_module_travels_by_value():
    names = {"operator": operator, "Input": Input}  # and no `__name__`, as `exec` may be called
    exec(
        "@operator('testing.processes_nowhere', inputs=Input())\n"
        "def negated(xp, x):\n    return -x\n",
        names,
    )
    pipe = built(
        lambda: fn.testing.processes_nowhere(
            fn.external_source(lambda: np.arange(7, dtype=np.int32)[:, None])
        ),
        "processes",
    )
    assert pipe.run()[0].as_array().ravel().tolist() == [-k for k in range(7)]


def test_an_error_of_the_user_shows_where_it_was_raised():
    @operator("testing.processes_fail", inputs=Input())
    def fail(xp, x):
        raise KeyError("the user's own words")

    pipe = built(
        lambda: fn.testing.processes_fail(fn.external_source(lambda: [np.int32(3)] * 7)),
        "processes",
    )
    with pytest.raises(KeyError, match="the user's own words") as caught:
        pipe.run()
    found = str(caught.value.__cause__.__cause__)
    assert 'raise KeyError("the user\'s own words")' in found
    assert __file__ in found


def test_a_graph_that_cannot_travel_runs_in_threads():
    @operator("testing.processes_lock", inputs=Input(), args=[Arg("lock", ObjectArg, None, "")])
    def locked(xp, x, lock):
        return x + xp.int32(1)

    @pipeline_def(batch_size=2, num_threads=2, device_id=None, workers="processes")
    def p():
        x = fn.external_source(lambda: [np.int32(3)] * 2)
        return fn.testing.processes_lock(x, lock=threading.Lock())

    pipe = p()
    assert int(np.array(pipe.run()[0][0])) == 4
    statistics = pipe.executor_statistics()
    assert statistics["workers"] == "threads"
    assert "lock" in statistics["why_threads"]


def test_a_source_stays_in_the_program_with_all_it_holds():
    lock, numbers = threading.Lock(), (number for number in itertools.count())

    def source():
        with lock:
            return np.full((7, 3), next(numbers))

    pipe = built(lambda: fn.external_source(source) + 1, "processes")  # not in threads
    for number in range(3):
        (found,) = pipe.run()
        np.testing.assert_array_equal(found.as_array(), np.full((7, 3), number + 1))


class Unwelcome:
    """What a worker cannot unpack."""

    def __init__(self):
        self.home = os.getpid()

    def __reduce__(self):
        return _unpacked, (self.home,)


def _unpacked(home):
    assert home == os.getpid(), "only at home"
    return Unwelcome()


def test_a_graph_that_workers_cannot_unpack_runs_in_threads():
    @operator("testing.processes_home", inputs=Input(), args=[Arg("x", ObjectArg, None, "")])
    def homely(xp, data, x):
        return data + xp.int32(1)

    pipe = built(
        lambda: fn.testing.processes_home(
            fn.external_source(lambda: [np.int32(3)] * 7), x=Unwelcome()
        ),
        "processes",
    )
    assert int(np.array(pipe.run()[0][0])) == 4
    statistics = pipe.executor_statistics()
    assert statistics["workers"] == "threads"
    assert "only at home" in statistics["why_threads"]


def test_an_operator_that_does_not_say_how_many_axes_it_makes():
    @operator("testing.processes_axes", inputs=Input(), infer=lambda x: Spec(types.INT32, None))
    def axes(xp, x):
        return xp.zeros((2,) * int(x), xp.int32)

    def graph(numbers):
        x = fn.external_source(lambda: [np.int32(n) for n in numbers])
        return fn.testing.processes_axes(x)

    assert check_same(lambda: graph([2] * 7)).run()[0][0].shape() == [2, 2]
    pipe = built(lambda: graph([2] * 6 + [3]), "processes")
    with pytest.raises(ValueError, match="axes, of shape"):
        pipe.run()


# -- choices ---------------------------------------------------------------------------------------


def graph_of_numbers():
    return fn.external_source(lambda: [np.int32(3)] * 7) + 1


@pytest.mark.parametrize(
    ("workers", "switch", "expected"),
    [
        (None, "processes", "processes"),
        (None, "threads", "threads"),
        ("threads", "processes", "threads"),
        ("processes", "threads", "processes"),
    ],
)
def test_the_argument_counts_more_than_the_environment(monkeypatch, workers, switch, expected):
    monkeypatch.setenv("HEADRACE_WORKERS", switch)

    @pipeline_def(batch_size=7, num_threads=2, device_id=None)
    def p():
        return graph_of_numbers()

    pipe = p(workers=workers)
    pipe.build()
    assert pipe.executor_statistics()["workers"] == expected


def test_what_is_no_choice_is_refused():
    with pytest.raises(ValueError, match='"threads", "processes", or None'):
        built(graph_of_numbers, "fibres")
