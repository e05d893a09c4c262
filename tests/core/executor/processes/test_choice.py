"""The engine chooses threads or worker processes, and no choice makes a program fail."""

from __future__ import annotations

import errno
import os
import signal

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from headrace.executor.processes import choice, pipeline_processes
from headrace.executor.processes.server_process import SERVER
from headrace.operators import Input, operator
from tests.support.images import class_folders
from tests.support.processes import check, kill, numbers, wait_until
from tests.support.videos import write_video

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")

LATER = "worker processes start when"


@pytest.fixture(autouse=True)
def processors(monkeypatch):
    """Says how many processors there are; four by itself."""

    def set_count(count):
        monkeypatch.setattr(choice.os, "sched_getaffinity", lambda pid: set(range(count)))

    monkeypatch.delenv("HEADRACE_WORKERS", raising=False)
    monkeypatch.setattr(pipeline_processes, "_SHORT_RUN_SECONDS", 0.0)
    # Samples of tests are light.
    monkeypatch.setattr(pipeline_processes, "_LIGHT_SECONDS", 0.0)
    monkeypatch.setattr(pipeline_processes, "_LIGHT_SECONDS_OF_TWO", 0.0)
    set_count(4)
    return set_count


def of_choice(**options):
    return numbers(num_threads=4, workers=None, **options)


def built(graph, **options):
    @pipeline_def(batch_size=4, device_id=None, **({"num_threads": 4} | options))
    def p():
        return graph()

    pipe = p()
    pipe.build()
    return pipe


def reason(pipe):
    statistics = pipe.executor_statistics()
    assert (statistics["workers"] == "threads") == bool(statistics["why_threads"])
    return statistics["why_threads"]


def fed():
    return fn.external_source(lambda: [np.int32(3)] * 4)


# -- what is chosen --------------------------------------------------------------------------------


def test_processes_are_chosen_from_two_threads_and_processors_on(processors):
    for count, num_threads, expected in [
        (2, 2, LATER),
        (16, 2, LATER),
        (2, 64, LATER),
        (2, 1, "`num_threads` is 1"),
        (1, 16, "may use 1 processor;"),
        (1, 1, "`num_threads` is 1"),
    ]:
        processors(count)
        found = reason(built(lambda: fed() + 1, num_threads=num_threads))
        assert expected in found
    processors(1)
    assert reason(built(lambda: fed() + 1, workers="processes")) == ""


def test_there_are_not_many_more_processes_than_processors(processors):
    assert [choice.process_count(k) for k in (4, 8, 500)] == [4, 8, 8]
    processors(16)
    assert [choice.process_count(k) for k in (4, 16, 500)] == [4, 16, 32]
    processors(4)
    pipe = built(lambda: fed() + 1, num_threads=500)
    assert pipe._executor.processes.count == 8
    assert int(np.array(pipe.run()[0][0])) == 4


def test_the_environment_may_leave_the_choice_to_the_engine(monkeypatch):
    monkeypatch.setenv("HEADRACE_WORKERS", "auto")
    assert LATER in reason(built(lambda: fed() + 1))
    monkeypatch.setenv("HEADRACE_WORKERS", "threads")
    assert reason(built(lambda: fed() + 1)) == "as asked for"


def test_reading_and_draws_stay_in_threads(tmp_path):
    class_folders(tmp_path, 5)

    def graph(works):
        jpegs, labels = fn.readers.file(file_root=str(tmp_path))
        flipped = fn.random.coin_flip() + fn.cast(labels, dtype=types.INT32)
        return jpegs, flipped, *((fn.peek_image_shape(jpegs),) if works else ())

    assert "nothing but reading" in reason(built(lambda: graph(False)))
    assert LATER in reason(built(lambda: graph(True)))


def test_videos_are_decoded_in_processes_from_the_first_batch_on(tmp_path, processors):
    pytest.importorskip("av")
    path = write_video(tmp_path / "a.mp4", frames=4)
    processors(1)

    def graph(reads):
        if reads:
            video = fn.readers.video(filenames=[path], sequence_length=2)
            return video if reads == "alone" else fn.readers.mix([video])[0]
        encoded = fn.external_source(lambda: [np.fromfile(path, np.uint8)] * 4)
        return fn.decoders.video(encoded)

    for reads in ("alone", "mixed", ""):
        pipe = built(lambda reads=reads: graph(reads), num_threads=1)
        assert reason(pipe) == ""
        assert pipe.run()[0][0].shape()[1:] == [48, 64, 3]
        assert pipe._executor.processes.count == 1


def test_videos_that_this_program_alone_can_read_stay_in_threads():
    pytest.importorskip("av")
    fsspec = pytest.importorskip("fsspec")
    fsspec.filesystem("memory").pipe("/choice/a.mp4", write_video(frames=4))

    def graph(is_mixed):
        video = fn.readers.video(filenames=["memory://choice/a.mp4"], sequence_length=4)
        return fn.readers.mix([video])[0] if is_mixed else video

    for is_mixed in (False, True):
        assert "memory://" in reason(built(lambda is_mixed=is_mixed: graph(is_mixed)))


def test_operators_of_the_program_stay_in_threads():
    seen = []

    @operator("testing.choice_counts", inputs=Input())
    def counts(xp, x):
        seen.append(1)
        return x + xp.int32(1)

    pipe = built(lambda: fn.testing.choice_counts(fed()))
    assert "`testing.choice_counts` is an operator of the program" in reason(pipe)
    assert int(np.array(pipe.run()[0][0])) == 4
    assert seen
    pipe = built(lambda: fn.testing.choice_counts(fed()), workers="processes")
    assert reason(pipe) == ""


def test_addresses_that_this_program_alone_can_read_stay_in_threads():
    fsspec = pytest.importorskip("fsspec")
    storage = fsspec.filesystem("memory")
    try:
        for k in range(4):
            storage.pipe_file(f"/choice/{k}", bytes([k]))

        def graph():
            files = [f"memory://choice/{k}" for k in range(4)]
            return fn.readers.file(files=files)[0] + 1

        pipe = built(graph)
        assert "memory://" in reason(pipe)
        assert [int(np.array(s)[0]) for s in pipe.run()[0]] == [1, 2, 3, 4]
    finally:
        storage.rm("/choice", recursive=True)


# -- what is not there -----------------------------------------------------------------------------


def refuse(*args, **kwargs):
    raise OSError(errno.EPERM, "Operation not permitted")


def test_where_there_is_no_shared_memory_there_are_threads(monkeypatch):
    monkeypatch.setattr(os, "memfd_create", refuse)
    pipe = of_choice()
    check(pipe, 0)
    assert "not permitted" in reason(pipe)


def test_where_memory_cannot_be_mapped_there_are_threads(monkeypatch):
    from headrace.executor.processes.shared_pool import SHARED_POOL

    monkeypatch.setattr(type(SHARED_POOL), "empty", refuse)
    pipe = of_choice()
    check(pipe, 0)
    assert "cannot be started here" in reason(pipe)


def test_where_no_process_may_be_started_there_are_threads(monkeypatch):
    monkeypatch.setattr(SERVER, "fork", refuse)
    pipe = of_choice()
    check(pipe, 0)
    assert "not permitted" in reason(pipe)


def test_where_an_application_is_the_interpreter_there_are_threads(monkeypatch):
    monkeypatch.setattr(choice.sys, "frozen", True, raising=False)
    assert "interpreter" in reason(built(lambda: fed() + 1))


def test_where_processes_end_at_once_there_are_threads(monkeypatch):
    from headrace.executor.sources.channel import Channel

    def fork(modules):
        ours, theirs = Channel.pair()
        theirs.shutdown(2)
        ended.append(theirs)
        return Channel(ours)

    ended = []
    monkeypatch.setattr(SERVER, "fork", fork)
    pipe = of_choice()
    for k in range(3):
        check(pipe, 8 * k)
    assert "ended" in reason(pipe)
    for theirs in ended:
        theirs.close()


# -- how they begin, and end -----------------------------------------------------------------------


def at_work(pipe, checked=0):
    """Check batches until processes make them; how many numbers there were."""
    done = [checked]

    def is_sent():
        check(pipe, done[0])
        done[0] += 8
        return any(program.is_sent for program in pipe._executor._programs._programs.values())

    wait_until(is_sent)
    return done[0]


def test_a_short_run_starts_no_processes(monkeypatch):
    monkeypatch.setattr(pipeline_processes, "_SHORT_RUN_SECONDS", 1e9)
    started = []
    monkeypatch.setattr(pipeline_processes.POOL, "enter", lambda *args: started.append(args))
    pipe = of_choice()
    for k in range(10):
        check(pipe, 8 * k)
    assert not started
    monkeypatch.undo()
    monkeypatch.setattr(pipeline_processes, "_SHORT_RUN_SECONDS", 0.0)
    at_work(pipe, 80)


@pytest.mark.parametrize("threads", [2, 4])
def test_threads_carry_light_samples_until_they_become_heavier(monkeypatch, threads):
    name = "_LIGHT_SECONDS_OF_TWO" if threads == 2 else "_LIGHT_SECONDS"
    monkeypatch.setattr(pipeline_processes, name, 1.0)
    pipe = numbers(num_threads=threads, workers=None)
    for k in range(10):
        check(pipe, 8 * k)
    assert "microseconds of a processor" in reason(pipe)
    assert not pipe._executor.processes.has_started
    (program,) = pipe._executor._programs._programs.values()
    carries = pipe._executor.processes.carry
    program.processor_seconds = 1.5
    assert not carries(program)  # not that much heavier
    program.processor_seconds = 2.5
    assert carries(program)
    program.processor_seconds = 1.5
    assert carries(program)
    assert reason(pipe) == ""
    pipe._executor.processes._light_seconds = 0.0
    at_work(pipe, 80)


@pytest.mark.parametrize(("count", "why"), [(2, "microseconds of a processor"), (3, "")])
def test_processes_carry_light_samples_of_readers(tmp_path, monkeypatch, processors, count, why):
    """They have whole batches each, as more are begun early, if the program has a processor."""
    processors(count)
    for k in range(16):
        np.save(tmp_path / f"{k:02}.npy", np.full(10, k))
    monkeypatch.setattr(pipeline_processes, "_LIGHT_SECONDS_OF_TWO", 1.0)

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def read():
        return fn.readers.numpy(file_root=str(tmp_path)) + 1

    pipe = read()
    for k in range(40):
        (found,) = pipe.run()
        np.testing.assert_array_equal(found.as_array()[:, 0], np.arange(4) + 4 * (k % 4) + 1)

    def is_chosen():
        pipe.run()
        found = reason(pipe)
        return why in found if why else not found

    wait_until(is_chosen)


def test_light_samples_are_carried_as_asked_for(monkeypatch):
    monkeypatch.setattr(pipeline_processes, "_LIGHT_SECONDS", 1.0)
    pipe = numbers(num_threads=4, workers="processes")
    at_work(pipe)
    assert reason(pipe) == ""


def test_threads_begin_and_processes_go_on():
    pipe = of_choice()
    number = at_work(pipe)
    assert pipe._executor.processes.pids()
    for k in range(10):
        check(pipe, number + 8 * k)
    assert reason(pipe) == ""


def test_a_process_that_is_killed_is_made_up_for():
    pipe = of_choice()
    number = at_work(pipe)
    for _ in range(4):
        for pid in pipe._executor.processes.pids():
            kill(pid)
        number = at_work(pipe, number)
    assert reason(pipe) == ""


def test_threads_go_on_where_a_process_waits_too_long():
    pipe = of_choice(py_worker_timeout_seconds=0.5)
    number = at_work(pipe)
    stopped = []

    def is_refused():
        for pid in set(pipe._executor.processes.pids()) - set(stopped):
            os.kill(pid, signal.SIGSTOP)
            stopped.append(pid)
        check(pipe, number + 8 * is_refused.count)
        is_refused.count += 1
        return bool(reason(pipe))

    is_refused.count = 0
    try:
        wait_until(is_refused)
    finally:
        for pid in stopped:
            kill(pid)
    assert "stopped" in reason(pipe)
