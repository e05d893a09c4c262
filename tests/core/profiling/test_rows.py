import numpy as np

from headrace.profiling.rows import SPAN, Observations, SharedRows, SpanRows


def test_rows_come_back_as_they_were_noted():
    rows = SpanRows(rows=3)
    for k in range(7):
        rows.note(k, 10 + k, 2, 0, 100 * k, 100 * k + 50, 25)
    found = rows.array()
    assert found.dtype == SPAN
    assert found["code"].tolist() == list(range(7))
    assert found["iteration"].tolist() == [10 + k for k in range(7)]
    assert (found["end"] - found["begin"] == 50).all()
    assert not rows.is_cut


def test_the_oldest_rows_are_dropped_when_there_are_very_many():
    rows = Observations(rows=2)
    for k in range(200):
        rows.note(k, 0, 0, 0, 0, 0, 0, -1, -1)
    times = rows.array()["time"].tolist()
    assert rows.is_cut
    assert times == list(range(times[0], 200))
    assert 0 < times[0] < 160


def test_rows_of_a_process_are_taken_once_and_get_their_codes():
    own = SpanRows(rows=4)
    own.note(0, 5, 1, 0, 10, 20, 3)
    own.note(2, 5, 1, 1, 20, 30, 3)
    packed = own.taken()
    assert own.taken() == b""
    shared = SharedRows()
    shared.add(packed, 40)
    shared.add(packed, 0)
    assert shared.array()["code"].tolist() == [40, 42, 0, 2]
    assert np.array_equal(shared.array()["begin"], [10, 20, 10, 20])


def test_rows_of_a_process_fill_blocks():
    own = SpanRows()
    for k in range(10_000):
        own.note(k, 0, 0, 0, 0, 0, 0)
    packed, shared = own.taken(), SharedRows()
    for _ in range(5):
        shared.add(packed, 1)
    assert shared.array()["code"].tolist() == [*range(1, 10_001)] * 5
