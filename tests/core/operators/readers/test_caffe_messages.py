"""Messages of Caffe and Caffe2 beside the library protobuf: random ones, and damaged ones."""

from __future__ import annotations

import numpy as np
import pytest
from google.protobuf.message import DecodeError

from headrace.kernels.cpu.protobuf import Message
from headrace.operators.readers import caffe, caffe2
from tests.support.fuzz import mutants
from tests.support.messages import MESSAGES, RandomWire


def datum(data):
    """Extents, image and label of a `Datum`."""
    image, label = caffe._parse(np.frombuffer(data, np.uint8))
    return image.tobytes(), label.tolist()


def expected_datum(data):
    wanted = MESSAGES["Datum"].FromString(data)
    return wanted.data, [wanted.label] if wanted.HasField("label") else []


def tensors(data):
    found = []
    for part in Message.of(np.frombuffer(data, np.uint8)).parts(1):
        tensor = caffe2._TensorRecord.of(part)
        m = tensor.message
        lists = m.floats(3), m.integers(4).astype(np.int32), m.integers(10)
        texts = [[each.tobytes() for each in m.parts(n)] for n in (5, 6)]
        found.append(
            (tensor.kind, tensor.dims, *[each.tolist() for each in lists], texts[0][-1:], texts[1])
        )
    return found


def expected_tensors(data):
    return [
        (
            t.data_type if t.HasField("data_type") else 1,
            list(t.dims),
            *(list(t.floats), list(t.ints), list(t.longs)),
            [t.byte_data] if t.HasField("byte_data") else [],
            list(t.strings),
        )
        for t in MESSAGES["TensorProtos"].FromString(data).protos
    ]


@pytest.mark.parametrize("what", ["datum", "tensors"])
def test_messages(what):
    wire = RandomWire(5)
    make, read, expected = {
        "datum": (wire.datum, datum, expected_datum),
        "tensors": (wire.tensors, tensors, expected_tensors),
    }[what]
    taken = []
    for _ in range(150):
        data = make()
        if what == "datum" and MESSAGES["Datum"].FromString(data).HasField("encoded"):
            data += b"\x38\x01"  # it is: other ones have extents that fit
        np.testing.assert_equal(read(data), expected(data), err_msg=repr(data))
        for mutant in mutants(data or b"?", 10):
            try:
                want = expected(mutant)
            except DecodeError:
                continue  # lists that nobody reads are not looked into
            taken.append(mutant)
            try:
                got = read(mutant)
            except caffe.BadSampleError as error:
                assert "does not match its height" in str(error)  # noqa: PT017
                continue
            if what == "tensors":
                pairs = zip(want, got, strict=True)  # what is no type at all is no value
                want = [(*(w if w[0] in caffe2._TYPES else g)[:1], *w[1:]) for w, g in pairs]
            np.testing.assert_equal(got, want, err_msg=repr(mutant))
    assert len(taken) > 100
