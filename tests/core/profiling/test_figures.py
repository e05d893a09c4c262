"""Figures of rows that are made by hand: clocks are injected."""

import json

import pytest

from headrace.profiling.figures import figures_of
from headrace.profiling.page import page
from headrace.profiling.recorder import Label, ProfileRecorder, Setup
from headrace.profiling.rows import SpanRows
from headrace.profiling.timeline import timeline, written

MS = 1_000_000


@pytest.fixture
def recorder():
    """Ten batches of 8 samples, one every 10 ms; the consumer waits for 4 ms of them."""
    made = ProfileRecorder(Setup(name="pipeline 1", batch_size=8, threads=2, depth=2, processors=4))
    made.labels += [
        Label("fn.readers.file", "reader", 0, "train.py:3"),
        Label("fn.resize", "operator", 1, "train.py:4"),
        Label("samples of stage 0", "chunk"),
        Label("wait for a batch", "take"),
        Label("external source x", "source"),
    ]
    consumer, one, two = (
        made.lane(name) for name in ("consumer", "headrace-worker-0", "headrace-worker-1")
    )
    for k in range(10):
        begin = 10 * k * MS
        # 6 ms of its own, 4 ms of waiting; every other time a batch is there.
        consumer.note(3, k, k % 2, 2, begin + 6 * MS, begin + 10 * MS, 0)
        # 2 ms of reading, of which the processor is used for a half, 6 of resizing.
        one.note(2, k, 8, 0, begin, begin + 8 * MS, 7 * MS)
        one.note(0, k, 8, 0, begin, begin + 2 * MS, 1 * MS)
        one.note(1, k, 8, 0, begin + 2 * MS, begin + 8 * MS, 6 * MS)
        waited = 100 if k % 2 else 5 * MS
        made.looks.note(begin + 5 * MS, 2, 1, 1000, 500 * k, 70 + k, 9000, waited, k * MS)
    assert two.array().size == 0
    return made


def test_shares_and_times(recorder):
    found = figures_of(recorder)
    assert found.batches == 9
    assert found.seconds == pytest.approx(0.09)
    assert found.samples == 72
    assert found.samples_per_second == pytest.approx(800)
    assert found.consumer_waits == pytest.approx(0.4)
    assert found.consumer_works == pytest.approx(0.6)
    assert found.working == pytest.approx(0.4)  # of two threads
    assert found.processors_used == pytest.approx(0.7)
    assert found.reading == pytest.approx(0.25)
    assert found.reading_waits == pytest.approx(0.125)
    assert found.computing_waits == 0
    assert found.slowest == "fn.resize"
    assert found.slowest_share == pytest.approx(0.75)
    assert found.takes_that_waited == pytest.approx(4 / 9)
    assert found.interpreter_held == pytest.approx(4 / 9)
    assert found.processor_waits == pytest.approx(8 / 72)
    assert found.pool_peak_bytes == 1000 + 4500
    assert found.device_peak_bytes == 79
    reading, resizing = found.operators
    assert reading.label.name == "fn.readers.file"
    assert reading.microseconds_per_sample == pytest.approx(250)
    assert resizing.microseconds_per_sample == pytest.approx(750)
    lanes = {lane.name: lane for lane in found.lanes}
    assert lanes["headrace-worker-0"].working == pytest.approx(0.8)
    assert lanes["headrace-worker-0"].idle == pytest.approx(0.2)
    assert lanes["headrace-worker-0"].processor == pytest.approx(0.7)


def test_a_source_takes_time_of_its_consumer(recorder):
    for k in range(10):
        recorder.lanes["consumer"].note(4, k, 8, 0, 10 * k * MS, (10 * k + 5) * MS, 0)
    found = figures_of(recorder)
    assert found.consumer_asks == pytest.approx(0.5)
    assert found.consumer_works == pytest.approx(0.1)
    assert found.source == "external source x"


def test_nothing_follows_from_one_batch():
    made = ProfileRecorder()
    made.labels += [Label("wait for a batch", "take")]
    made.lane("consumer").note(0, 0, 0, 1, 0, MS, 0)
    assert figures_of(made).batches == 0
    assert "Measure longer" in page([made])


def test_the_timeline_is_what_perfetto_reads(recorder):
    read = json.loads(written(timeline([recorder])))
    events = read["traceEvents"]
    names = {
        e["tid"]: e["args"]["name"] for e in events if e["ph"] == "M" and e["name"] == "thread_name"
    }
    assert list(names.values()) == ["consumer", "headrace-worker-0", "headrace-worker-1"]
    resizing = [e for e in events if e["ph"] == "X" and e["name"] == "fn.resize"]
    assert len(resizing) == 10
    assert resizing[1]["ts"] == 12_000
    assert resizing[1]["dur"] == 6_000
    assert resizing[1]["args"] == {
        "batch": 1,
        "samples": 8,
        "first": 0,
        "processor_us": 6000.0,
    }
    counters = [e for e in events if e["ph"] == "C" and e["name"] == "batches"]
    assert [e["args"] for e in counters] == [{"ready": 1, "in progress": 1}] * 10


def test_the_page_needs_nothing_else_and_names_what_there_is(recorder):
    recorder.setup.name = "<b>mine</b>"
    html = page([recorder])
    for said in (
        "fn.resize",
        "train.py:4",
        "What to do",
        "Who waits for whom",
        "headrace-worker-0",
    ):
        assert said in html
    assert "<b>mine</b>" not in html
    for outside in ("src=", "href=", "http:", "https:", "url(", "@import", "<script"):
        assert outside not in html
    assert html.count("<table>") == html.count("<caption>") == html.count("</table>")
    assert "prefers-color-scheme:dark" in html


def test_processes_that_follow_one_another_count_as_one():
    made = ProfileRecorder(Setup(batch_size=4, threads=1, workers="processes"))
    made.labels += [Label("samples of stage 0", "chunk"), Label("wait for a batch", "take")]
    own = SpanRows()
    own.note(0, 1, 4, 0, 10 * MS, 20 * MS, 5 * MS)
    made.process(11).add(own.taken(), 0)
    own.note(0, 2, 4, 0, 20 * MS, 30 * MS, 5 * MS)
    made.process(12).add(own.taken(), 0)
    for k in range(3):
        made.lane("consumer").note(1, k, 0, 1, 10 * k * MS, 10 * (k + 1) * MS, 0)
    found = figures_of(made)
    assert found.working == pytest.approx(1)
    assert found.processors_used == pytest.approx(0.5)
    assert found.interpreter_held is None
    assert [lane.name for lane in found.lanes] == ["worker process 11", "worker process 12"]


@pytest.mark.parametrize("carries", ["threads", "processes", "both"])
def test_who_carries_is_seen_and_not_believed(recorder, carries):
    """Processes that the engine has chosen start after two seconds, or never."""
    recorder.setup.workers = "processes"
    rows = recorder.lanes.pop("headrace-worker-0")
    code = recorder.code("function", lambda: [Label("fn.python_function", "callback", 2)])
    lanes = {
        "threads": ["headrace-worker-0", "headrace-worker-1"],
        "processes": ["worker process 1", "worker process 2"],
        "both": ["headrace-worker-0", "worker process 1"],
    }[carries]
    for k in range(10):
        rows.note(code, k, 8, 0, (10 * k + 8) * MS, (10 * k + 9) * MS, 0)
    recorder.lanes |= dict.fromkeys(lanes, rows)
    found = figures_of(recorder)
    assert found.working == pytest.approx(0.9)
    assert found.workers == ("threads" if carries == "threads" else "processes")
    assert found.has_chosen_processes
    assert (found.interpreter_held is None) is (carries != "threads")
    assert found.processor_waits is not None
    one_by_one = {"threads": 2, "processes": 1, "both": 1.5}[carries]
    assert found.callbacks == pytest.approx(0.1 * one_by_one)
