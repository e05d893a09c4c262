"""`Example` messages of TensorFlow beside the library protobuf: random ones, and damaged ones.

The library reads a map as a list of entries here, of which the last of a name counts: where it
knows that it is a map, it drops entries with unknown fields (its implementation in C alone).
"""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf.message import DecodeError

from headrace.kernels.cpu import tf_example
from headrace.kernels.cpu.tf_example import BEGIN, COUNT, END, KIND, WHOLE
from tests.support.fuzz import mutants
from tests.support.messages import MESSAGES, RandomWire
from tests.support.tf_records import frame

NAMES = [b"a", b"label", "ü".encode(), b""]
LISTS = {None: 0, "bytes_list": 1, "float_list": 2, "int64_list": 3}


def found_in(record: bytes, names=NAMES):
    """State of a record, and of each feature what can be compared: kind, count, values."""
    data = np.frombuffer(record, np.uint8)
    rows = np.empty((len(names), 6), np.int64)
    joined = np.frombuffer(b"".join(names), np.uint8)
    state = tf_example.find_features(data, joined, np.cumsum([len(n) for n in names]), rows)
    if state != WHOLE:
        return state, None
    features = []
    for row in rows:
        kind, count = int(row[KIND]), int(row[COUNT])
        values = []
        if count:
            first = record[row[BEGIN] : row[END]]
            values = [first] if kind == 1 else tf_example.read_numbers(data, row).tolist()
        features.append((kind, count, values))
    return state, features


def expected(features):
    """The same by the library."""
    wanted = []
    for name in NAMES:
        feature = features.get(name)
        kind = feature and feature.WhichOneof("kind")
        values = list(getattr(feature, kind).value) if kind else []
        wanted.append((LISTS[kind], len(values), values[:1] if kind == "bytes_list" else values))
    return wanted


@pytest.mark.parametrize("seed", range(3))
def test_random_messages(seed):
    wire = RandomWire(seed)
    seen = set()
    for _ in range(300):
        data = wire.example(NAMES)
        parsed = MESSAGES["PlainExample"].FromString(data)
        want = expected({e.key: e.value for e in parsed.features.entry})
        assert found_in(frame(data)) == (WHOLE, want), data
        seen |= {(kind, count > 1) for kind, count, _ in want}
    assert len(seen) == 7


@pytest.mark.parametrize("seed", range(2))
def test_damaged_messages(seed):
    """Whatever the library takes is taken, with the same values, and nothing else."""
    wire = RandomWire(seed)
    taken = []
    for _ in range(40):
        data = wire.example(NAMES)
        for mutant in mutants(data, 20, seed=seed):
            record = frame(mutant)
            try:
                parsed = MESSAGES["PlainExample"].FromString(mutant)
            except DecodeError:
                want = tf_example.DAMAGED, None
            else:
                want = WHOLE, expected({e.key: e.value for e in parsed.features.entry})
            got = found_in(record)
            np.testing.assert_equal(got, want, err_msg=repr(mutant))
            taken.append(want[1] is not None)
    assert 0.05 < np.mean(taken) < 0.95


def test_maps():
    example = MESSAGES["Example"]()
    for k, name in enumerate(NAMES):
        example.features.feature[name.decode()].int64_list.value.extend([k, -k])
    record = frame(example.SerializeToString())
    assert found_in(record) == (WHOLE, [(3, 2, [k, -k]) for k in range(4)])


def test_checksums():
    data = MESSAGES["Example"]()
    data.features.feature["a"].int64_list.value.append(7)
    record = frame(data.SerializeToString())
    for place, state in (
        (0, tf_example.OTHER_LENGTH),
        (8, tf_example.WRONG_LENGTH_SUM),
        (12, tf_example.WRONG_SUM),
        (len(record) - 5, tf_example.WRONG_SUM),
        (len(record) - 1, tf_example.WRONG_SUM),
    ):
        for bit in range(8):
            wrong = bytearray(record)
            wrong[place] ^= 1 << bit
            assert found_in(bytes(wrong))[0] == state
    for length in range(16):
        assert found_in(record[:length])[0] == tf_example.OTHER_LENGTH
    none = record[:8] + bytes(4) + record[12:-4] + bytes(4)
    assert found_in(none, [b"a"]) == (WHOLE, [(3, 1, [7])])
    assert found_in(record[:8] + bytes(4) + record[12:])[0] == tf_example.WRONG_LENGTH_SUM
    assert found_in(record[:-4] + bytes(4))[0] == tf_example.WRONG_SUM


def test_sequences():
    """Of a `SequenceExample` the context is read as an `Example`; its lists are told apart."""
    sequence = MESSAGES["SequenceExample"]()
    sequence.context.feature["a"].int64_list.value.append(7)
    sequence.feature_lists.feature_list["b"].feature.add().bytes_list.value.append(b"frame")
    record = frame(sequence.SerializeToString())
    assert found_in(record, [b"a", b"c"]) == (WHOLE, [(3, 1, [7]), (0, 0, [])])
    assert found_in(record, [b"a", b"b"])[0] == tf_example.SEQUENCE
