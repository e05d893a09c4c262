"""Thousands of damaged files of records: nothing but what was written, or an error naming the file.

Formats without checksums (RecordIO, LMDB) may give other bytes, but none from outside of the file.
"""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest

from headrace import Pipeline, fn, tfrecord
from headrace.errors import HeadraceError, NoGoodSampleError
from tests.support import caffe_records, record_io, tf_records
from tests.support.fuzz import FILES, outcomes
from tests.support.messages import MESSAGES

IMAGES = [bytes([65 + k]) * (300 + 40 * k) for k in range(6)]
FEATURES = {
    "image": tfrecord.FixedLenFeature((), tfrecord.string, ""),
    "label": tfrecord.VarLenFeature(tfrecord.int64, 0),
    "box": tfrecord.VarLenFeature(tfrecord.float32, 0.0),
}


def samples_of(reader, *, batch=6, **args):
    """Samples of the first batch, as tuples of bytes of all outputs, and the bad ones skipped."""
    how = {"on_bad_sample": args.pop("on_bad_sample", "raise")}
    pipe = Pipeline(batch, 1, None, prefetch_queue_depth=1, **how)
    with pipe:
        found = reader(**args)
        pipe.set_outputs(*(found.values() if isinstance(found, dict) else found))
    try:
        outputs = pipe.run()
    except NoGoodSampleError as error:
        raise error.__cause__ or error from None
    rows = [
        tuple(np.asarray(out.at(k)).tobytes() for out in outputs) for k in range(len(outputs[0]))
    ]
    return rows, pipe.bad_samples


def example(image, number):
    message = MESSAGES["Example"]()
    feature = message.features.feature
    feature["image"].bytes_list.value.append(image)
    feature["label"].int64_list.value.extend(range(number))
    feature["box"].float_list.value.extend([0.5] * number)
    return tf_records.frame(message.SerializeToString())


def check(found, is_known, seen):
    """Each sample is one that may be, or there is an error."""
    if isinstance(found, HeadraceError):
        seen["error"] += 1
        return
    rows, bad = found
    seen["bad" if bad else "good"] += 1
    strange = [row for row in rows if not is_known(row)]
    assert not strange, strange


@FILES
@pytest.mark.parametrize("on_bad_sample", ["raise", "skip"])
def test_tf_records(tmp_path, count, on_bad_sample):
    """Checksums tell: what is read is what was written."""
    path, index = tmp_path / "shard-7.tfrecord", tmp_path / "shard-7"
    records = [example(image, k) for k, image in enumerate(IMAGES)]
    places = tf_records.write(path, records, index)

    def read():
        how = {"features": FEATURES, "on_bad_sample": on_bad_sample}
        return samples_of(fn.readers.tfrecord, **how, **places)

    wanted, _ = read()
    assert [row[0] for row in wanted] == IMAGES
    for file in (path, index):
        seen, content = Counter(), file.read_bytes()
        for _, found in outcomes(file, content, count, read):
            check(found, wanted.__contains__, seen)
        file.write_bytes(content)
        assert seen["bad"] + seen["error"] > count / 3
        assert (seen["bad"] > 0) == (on_bad_sample == "skip")
    assert seen["good"]


@FILES
def test_record_io(tmp_path, count):
    path, index = tmp_path / "shard-7.rec", tmp_path / "shard-7"
    records = [record_io.record(record_io.image(k, i, k)) for k, i in enumerate(IMAGES)]
    records[2] = record_io.record(record_io.image([1, 2], IMAGES[2] + record_io.MAGIC + IMAGES[3]))
    places = record_io.write(path, records, index)
    read = lambda: samples_of(fn.readers.mxnet, on_bad_sample="skip", **places)  # noqa: E731
    for file in (path, index):
        seen, content = Counter(), file.read_bytes()
        for _, found in outcomes(file, content, count, read):
            data = path.read_bytes()
            check(found, lambda row: row[0][:200] in data, seen)  # noqa: B023
        file.write_bytes(content)
        assert seen["bad"]
        assert seen["good"]


@FILES
@pytest.mark.parametrize("operator", ["caffe", "caffe2"])
def test_lmdb(tmp_path, count, operator):
    folder = tmp_path / "data.mdb"  # which errors name, too
    image = lambda data: caffe_records.tensor(4, [1], caffe_records.field(6, data))  # noqa: E731
    make = {
        "caffe": caffe_records.datum,
        "caffe2": lambda d, k: caffe_records.record(image(d), caffe_records.ints(k)),
    }[operator]
    many = [IMAGES[k % 6] * (1 + 11 * (k % 3)) for k in range(80)]
    caffe_records.write(folder, [make(data, k) for k, data in enumerate(many)])
    path = folder / "data.mdb"
    content = path.read_bytes()
    read = lambda: samples_of(  # noqa: E731
        getattr(fn.readers, operator), batch=80, on_bad_sample="skip", path=str(folder)
    )
    seen = Counter()
    for mutant, found in outcomes(path, content, count, read, hot=len(content)):
        check(found, lambda row: row[0] in mutant, seen)  # noqa: B023
    assert seen["error"]
    assert seen["good"]
