"""Running pipelines beside DALI's: order, ends of data, feeding, scheduling, inspection."""

from __future__ import annotations

import contextlib
import tempfile
from pathlib import Path

import numpy as np
import pytest

from tests.parity.outcomes import HEADRACE, Table, assert_differs, assert_same, attempt

BATCH = np.arange(6, dtype=np.int32).reshape(2, 3)


def feed(lib, **keywords):
    return lib.fn.external_source(source=lambda: BATCH, **keywords)


def built(lib, **settings):
    """Outputs of a pipeline with these settings."""
    return lib.pipe(lambda: feed(lib), **settings).run()


def until_stop(pipe, most=8):
    """First values of the batches up to the end of the data."""
    found = []
    with contextlib.suppress(StopIteration):
        while len(found) < most:
            found += [np.asarray(pipe.run()[0].at(0)).reshape(-1)[:1].tolist()]
    return found


running = Table()


def counting(lib, count=None, batch=2, **settings):
    """A pipeline that counts batches, up to `count`."""

    def source(index):
        if index == count:
            raise StopIteration
        return np.full((batch, 1), index, np.int32)

    return lib.pipe(lambda: lib.fn.external_source(source=source), **settings)


def named(lib, *names, **settings):
    """A pipeline whose external sources are fed."""
    return lib.pipe(lambda: tuple(lib.fn.external_source(name=n) for n in names), **settings)


def one(value, batch=2):
    return np.full((batch, 1), value, np.int32)


@running
def outputs_are_a_tuple(lib):
    result = counting(lib).run()
    return type(result).__name__, len(result), type(result[0]).__name__


@running
def batches_in_order(lib):
    return until_stop(counting(lib))


@running
def outputs_stay_valid(lib):
    pipe = counting(lib)
    return [pipe.run() for _ in range(5)]


@running
def end_of_data(lib):
    pipe = counting(lib, 3)
    found = [until_stop(pipe), attempt(pipe.run), attempt(pipe.run)]
    pipe.reset()
    return [*found, until_stop(pipe), attempt(pipe.run)]


@running
def reset_in_the_middle_does_nothing(lib):
    pipe = counting(lib, 4)
    pipe.run()
    pipe.reset()
    return until_stop(pipe)


@running
def reset_before_the_first_run(lib):
    pipe = counting(lib, 2)
    pipe.reset()
    return until_stop(pipe)


@running
def reset_twice(lib):
    seen = []

    def source(info):
        seen.append((info.iteration, info.epoch_idx))
        if info.iteration == 1:
            raise StopIteration
        return one(1)

    pipe = lib.pipe(lambda: lib.fn.external_source(source=source, batch_info=True))
    until_stop(pipe)
    pipe.reset()
    pipe.reset()
    until_stop(pipe)
    return seen


@running
def data_ends_at_once(lib):
    pipe = counting(lib, 0)
    return attempt(pipe.run), attempt(pipe.run)


@running
def two_sources_one_ends(lib):
    calls = []

    def short(index):
        calls.append(("short", index))
        if index == 1:
            raise StopIteration
        return one(index)

    def long(index):
        calls.append(("long", index))
        return one(10 + index)

    pipe = lib.pipe(
        lambda: (lib.fn.external_source(source=short), lib.fn.external_source(source=long))
    )
    first = until_stop(pipe)
    pipe.reset()
    return first, until_stop(pipe), sorted(calls)  # DALI has no order among sources


@running
def two_sources_end_apart(lib):
    calls = []

    def source(name, end):
        def function(index):
            calls.append((name, index))
            if index >= end:
                raise StopIteration
            return one(index)

        return function

    pipe = lib.pipe(
        lambda: (
            lib.fn.external_source(source=source("a", 2)),
            lib.fn.external_source(source=source("b", 3)),
        )
    )
    found = []
    for _ in range(3):
        found.append(until_stop(pipe))
        pipe.reset()
    return found, sorted(calls)


@running
def error_in_a_source_is_retried(lib):
    calls = []

    def source(index):
        calls.append(index)
        if len(calls) in (3, 4):
            raise LookupError("mine")
        return one(index)

    pipe = lib.pipe(lambda: lib.fn.external_source(source=source), prefetch_queue_depth=1)
    found = []
    for _ in range(5):
        try:
            found.append(np.asarray(pipe.run()[0].at(0)).tolist())
        except LookupError as error:
            found.append(str(error))
    return found, calls


@running
def error_of_an_operator(lib):
    """What each run gives when the operator fails on one batch only."""

    def graph():
        index = lib.fn.external_source(source=lambda i: [np.array(5 if i == 2 else i % 3)] * 2)
        return lib.types.Constant([1, 2, 3])[index]

    found = []
    for depth in (1, 2, 3):
        pipe = lib.pipe(graph, prefetch_queue_depth=depth)
        found.append([attempt(pipe.run) for _ in range(6)])
    return found


@running
def schedule_and_take(lib):
    pipe = counting(lib)
    found = []
    for _ in range(4):
        pipe.schedule_run()
        found.append(pipe.share_outputs())
        pipe.release_outputs()
    return found


@running
def schedule_and_outputs(lib):
    pipe = counting(lib, 3)
    found = []
    for _ in range(3):
        pipe.schedule_run()
        found.append(pipe.outputs())
    return found


@running
def schedule_past_the_end(lib):
    pipe = counting(lib, 2)
    found = []
    for _ in range(4):
        found.append(attempt(pipe.schedule_run))
        found.append(attempt(pipe.share_outputs))
        pipe.release_outputs()
    pipe.reset()
    pipe.schedule_run()
    return found, pipe.share_outputs()


@running
def queues(lib):
    """How many batches the first call starts, and how many there are to take."""
    found = []
    for depth, more in (
        (2, {}),
        ({"cpu_size": 1, "gpu_size": 3}, {}),
        ({"cpu_size": 3, "gpu_size": 2}, {}),
        (3, {"exec_async": False, "exec_dynamic": True}),
        (3, {"exec_pipelined": False}),
    ):
        calls = []
        pipe = lib.pipe(
            lambda calls=calls: lib.fn.external_source(lambda k: calls.append(k) or one(k)),
            prefetch_queue_depth=depth,
            **more,
        )
        pipe.schedule_run()
        started, taken = len(calls), []
        while not pipe.empty():
            taken.append(np.array(pipe.outputs()[0].at(0)))  # DALI uses its memory again
        found.append((started, taken, pipe.cpu_queue_size, pipe.gpu_queue_size))
    return found


@running
def sharing_what_was_prefetched(lib):
    pipe = counting(lib)
    pipe.schedule_run()
    return pipe.share_outputs(), pipe.share_outputs(), attempt(pipe.share_outputs)


running(
    outputs_without_schedule=lambda lib: counting(lib).outputs(),
    share_without_schedule=lambda lib: counting(lib).share_outputs(),
    release_without_schedule=lambda lib: counting(lib).release_outputs(),
    run_positional=lambda lib: named(lib, "x", prefetch_queue_depth=1).run(one(1)),
    run_none=lambda lib: counting(lib).run(None),
    run_unknown_input=lambda lib: named(lib, "x", prefetch_queue_depth=1).run(y=one(1)),
    run_no_input=lambda lib: named(lib, "x", prefetch_queue_depth=1).run(),
    run_one_input_of_two=lambda lib: named(lib, "x", "y", prefetch_queue_depth=1).run(x=one(1)),
    run_too_many_samples=lambda lib: named(lib, "x", prefetch_queue_depth=1).run(x=one(1, 3)),
    run_fewer_samples=lambda lib: named(lib, "x", prefetch_queue_depth=1).run(x=one(1, 1)),
    run_input_clash=lambda lib: named(lib, "x", "y", prefetch_queue_depth=1).run(
        x=one(1, 1), y=one(1)
    ),
    run_input_of_a_source_with_callback=lambda lib: lib.pipe(
        lambda: feed(lib, name="x"), prefetch_queue_depth=1
    ).run(x=one(1)),
    run_inputs_not_pipelined=lambda lib: named(lib, "x", exec_pipelined=False).run(x=one(1)),
    run_inputs_depth_one_of_each=lambda lib: named(
        lib, "x", prefetch_queue_depth={"cpu_size": 1, "gpu_size": 1}
    ).run(x=one(1)),
    feed_unknown=lambda lib: named(lib, "x").feed_input("y", one(1)),
    feed_number=lambda lib: named(lib, "x").feed_input(3, one(1)),
    feed_none=lambda lib: named(lib, "x").feed_input("x", None),
    feed_source_with_callback=lambda lib: lib.pipe(lambda: feed(lib, name="x")).feed_input(
        "x", one(1)
    ),
    feed_operator_that_is_no_input=lambda lib: lib.pipe(
        lambda: lib.fn.copy(feed(lib), name="x")
    ).feed_input("x", one(1)),
    starving=lambda lib: named(lib, "x").run(),
    starving_depth_one=lambda lib: named(lib, "x", prefetch_queue_depth=1).run(),
    feed_count=lambda lib: [
        named(lib, "x", **settings).input_feed_count("x")
        for settings in (
            {},
            {"prefetch_queue_depth": 5},
            {"prefetch_queue_depth": 1},
            {"prefetch_queue_depth": {"cpu_size": 3, "gpu_size": 2}},
            {"prefetch_queue_depth": {"cpu_size": 1, "gpu_size": 4}},
            {"exec_async": False},
            {"exec_pipelined": False},
            {"exec_pipelined": False, "exec_async": False},
            {"exec_dynamic": False},
        )
    ],
    feed_count_unknown=lambda lib: named(lib, "x").input_feed_count("y"),
    feed_count_of_a_callback=lambda lib: lib.pipe(lambda: feed(lib, name="x")).input_feed_count(
        "x"
    ),
    epoch_size_without_readers=lambda lib: counting(lib).epoch_size(),
    epoch_size_unknown=lambda lib: counting(lib).epoch_size("x"),
    reader_meta_without_readers=lambda lib: counting(lib).reader_meta(),
    reader_meta_unknown=lambda lib: counting(lib).reader_meta("x"),
    shm_statistics=lambda lib: counting(lib).external_source_shm_statistics(),
    start_py_workers=lambda lib: counting(lib).start_py_workers(),
)


@running
def feeding_the_whole_queue(lib):
    pipe = named(lib, "x")
    found = []
    for k in range(pipe.input_feed_count("x")):
        pipe.feed_input("x", one(k))
    for k in range(2, 6):
        found.append(pipe.run())
        pipe.feed_input("x", one(k))
    return found


@running
def one_feed_gives_the_first_batch(lib):
    pipe = named(lib, "x")
    pipe.feed_input("x", one(5))
    return pipe.run(), attempt(pipe.run)


@running
def feeding_a_node(lib):
    pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None, prefetch_queue_depth=1)
    with pipe:
        x = lib.fn.external_source()
        pipe.set_outputs(x)
    pipe.feed_input(x, one(4))
    return pipe.run()


@running
def feeding_with_layout(lib):
    pipe = named(lib, "x", prefetch_queue_depth=1)
    pipe.feed_input("x", one(4), layout="A")
    return pipe.run()


@running
def run_again_and_again_with_inputs(lib):
    pipe = named(lib, "x", "y", prefetch_queue_depth=1, batch_size=4)
    return [pipe.run(x=one(k, k + 1), y=one(-k, k + 1)) for k in range(4)]


@running
def fed_batches_are_copied(lib):
    pipe = named(lib, "x")
    data = one(0)
    for k in range(3):
        data[:] = k
        pipe.feed_input("x", data)
    return [pipe.run() for _ in range(2)]


@running
def empty_or_not(lib):
    pipe = counting(lib, 2)
    found = [pipe.empty()]
    pipe.run()
    found.append(pipe.empty())
    until_stop(pipe)
    return [*found, pipe.empty()]


@running
def latched_api(lib):
    found = []
    for first, second in (("run", "schedule_run"), ("schedule_run", "run"), ("run", "outputs")):
        pipe = counting(lib)
        getattr(pipe, first)()
        found.append(attempt(getattr(pipe, second)))
        pipe.enable_api_check(False)
        found.append(attempt(getattr(pipe, second)))
    return found


@running
def batch_sizes_of_operators_without_input(lib):
    pipe = lib.pipe(
        lambda: (lib.fn.external_source(name="x"), lib.fn.constant(idata=[3]), 4),
        prefetch_queue_depth=1,
        batch_size=5,
    )
    return [pipe.run(x=one(1, n)) for n in (5, 2, 3)]


@running
def random_batches_follow_the_input(lib):
    pipe = lib.pipe(
        lambda: (lib.fn.external_source(name="x"), lib.fn.random.uniform()),
        prefetch_queue_depth=1,
        batch_size=5,
    )
    return [[len(o) for o in pipe.run(x=one(1, n))] for n in (5, 2, 3)]


@running
def dot_file(lib):
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "graph.dot")
        pipe = counting(lib)
        result = pipe.save_graph_to_dot_file(str(path), show_tensors=True, use_colors=True)
        pipe.save_graph_to_dot_file(str(path))
        text = path.read_text()
    return result, text.split()[0], text.rstrip()[-1]


running(
    dot_file_nowhere=lambda lib: counting(lib).save_graph_to_dot_file("/nowhere/at/all.dot"),
    dot_file_show_ids=lambda lib: counting(lib).save_graph_to_dot_file("/dev/null", show_ids=True),
    dot_file_positional=lambda lib: counting(lib).save_graph_to_dot_file("/dev/null", True),
)


@pytest.mark.parametrize("name", running)
def test_running(name):
    assert_same(running[name])


def reading(lib, ask, count=7, **keywords):
    """What ``ask(pipeline)`` gives of a pipeline that reads `count` files with two readers."""
    with tempfile.TemporaryDirectory() as folder:
        files = [f"{k}.bin" for k in range(count)]
        for file in files:
            Path(folder, file).write_bytes(file.encode())

        def define():
            read = lib.fn.readers.file
            one, _ = read(file_root=folder, files=files, name="one", **keywords)
            _, two = read(file_root=folder, files=files[:3], name="two")
            return one, two

        return ask(lib.pipe(define, batch_size=2))


readers = Table()

readers(
    epoch_size=lambda lib: reading(lib, lambda p: p.epoch_size("one")),
    epoch_sizes=lambda lib: reading(lib, lambda p: p.epoch_size()),
    epoch_size_of_shards=lambda lib: reading(
        lib, lambda p: p.epoch_size(), num_shards=2, shard_id=1
    ),
    epoch_size_unknown=lambda lib: reading(lib, lambda p: p.epoch_size("three")),
    meta=lambda lib: reading(lib, lambda p: p.reader_meta("one")),
    metas=lambda lib: reading(lib, lambda p: p.reader_meta()),
    meta_of_shards=lambda lib: reading(
        lib,
        lambda p: p.reader_meta("one"),
        num_shards=3,
        shard_id=2,
        pad_last_batch=True,
        stick_to_shard=True,
    ),
    meta_unknown=lambda lib: reading(lib, lambda p: p.reader_meta("three")),
    outputs=lambda lib: reading(lib, lambda p: [p.run() for _ in range(5)]),
    feeding_a_reader=lambda lib: reading(lib, lambda p: p.feed_input("one", one(1))),
    reset=lambda lib: reading(lib, lambda p: (p.run(), p.reset(), p.run())),
)


@pytest.mark.parametrize("name", readers)
def test_readers(name):
    assert_same(readers[name])


def one_feed_for_each_run(lib):
    pipe = named(lib, "x")
    found = []
    for k in range(4):
        pipe.feed_input("x", one(k))
        found.append(int(np.asarray(pipe.run()[0].at(0))[0]))
    return found


# Scenario, what DALI does, what Headrace does.
DIFFERENT = {
    "one_feed_for_each_run": (one_feed_for_each_run, IndexError, [0, 1, 2, 3]),
    "stream_of_outputs": (lambda lib: counting(lib).output_stream(), AttributeError, None),
    "inputs_of_run_with_a_queue": (
        lambda lib: len(named(lib, "x").run(x=one(1))),
        RuntimeError,
        1,
    ),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_deliberate_differences(name):
    assert_differs(*DIFFERENT[name])


def test_iterations_without_asynchronous_execution():
    """The second one hangs in DALI's older executor."""
    assert until_stop(counting(HEADRACE, 5, exec_async=False, exec_dynamic=False)) == [
        [k] for k in range(5)
    ]


def sequence(events, depth, batch, api, reset):
    """A scenario: what nine runs give where calls of the source raise errors or end the data.

    `events` says which calls raise what: ``{2: "error", 5: "end"}``.
    """

    def scenario(lib):
        calls = iter(range(1000))

        def source(position):
            event = events.get(next(calls))
            if event == "error":
                raise LookupError
            if event == "end":
                raise StopIteration
            index = position if batch else position.iteration
            return np.full((2, 1) if batch else 1, index, np.int32)

        pipe = lib.pipe(
            lambda: lib.fn.external_source(source=source, batch=batch), prefetch_queue_depth=depth
        )
        found = []
        for _ in range(9):
            try:
                if api == "run":
                    outputs = pipe.run()
                else:
                    pipe.schedule_run()
                    outputs = pipe.share_outputs()
                    pipe.release_outputs()
                found.append(int(np.asarray(outputs[0].at(0))[0]))
            except (LookupError, StopIteration) as error:
                found.append(type(error).__name__)
                if reset and isinstance(error, StopIteration):
                    pipe.reset()
        return found

    return scenario


EVENTS = [
    *({k: "error"} for k in range(4)),
    *({k: "end"} for k in range(5)),
    {1: "error", 3: "end"},
    {2: "error", 3: "error"},
    {2: "end", 4: "error"},
    {0: "error", 1: "error", 2: "error"},
]


@pytest.mark.parametrize("events", EVENTS, ids=str)
def test_ends_and_errors_of_sources(events):
    for depth in (1, 2, 3):
        for batch in (True, False):
            for api in ("run", "schedule"):
                for reset in (True, False):
                    assert_same(sequence(events, depth, batch, api, reset))
