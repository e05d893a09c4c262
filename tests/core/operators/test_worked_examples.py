"""The worked examples of docs/operators.md: an operator, a reader and a decoder of a user's own."""

from __future__ import annotations

import ast
import json
from pathlib import Path

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn, types
from headrace.errors import ArgumentValueError, BadSampleError
from tests.support.worked_examples import EXAMPLES, declared, maps, pfm, program, write_records


@pytest.fixture(scope="module", autouse=True)
def names():
    with declared() as names:
        yield names


@pytest.fixture
def records(tmp_path):
    contents = [pfm(m, "<>"[k % 2]) for k, m in enumerate(maps())]
    write_records(tmp_path / "maps", contents, list(range(10, 16)))
    return str(tmp_path / "maps")


def subsampled(image, step, gain):
    levels = image[::step, ::step] * np.float32(gain)
    return np.rint(np.clip(levels, 0, 255)).astype(np.uint8)


def run(graph, batch_size=6, **settings):
    settings = {"num_threads": 2, "device_id": None, "seed": 1} | settings
    pipe = Pipeline(batch_size=batch_size, **settings)
    with pipe:
        pipe.set_outputs(*graph())
    pipe.build()
    return pipe


@pytest.mark.parametrize("title", EXAMPLES)
def test_they_are_short_and_import_little(title):
    text = program(title)
    assert text.count("\n") < 80
    nodes = ast.walk(ast.parse(text))
    modules = {n.module for n in nodes if isinstance(n, ast.ImportFrom)}
    ours = {m for m in modules if m.startswith("headrace")}
    assert ours <= {"headrace.errors", "headrace.operators", "headrace.types"}


IMAGES = [np.random.default_rng(k).integers(0, 256, (4 + k, 9, 3), np.uint8) for k in range(6)]


def test_a_pixel_operator():
    steps = np.int32([1, 2, 3, 4, 5, 20])

    def graph():
        images = fn.external_source(lambda: IMAGES, layout="HWC")
        step = fn.external_source(lambda: steps)
        return fn.subsample(images, step=step, gain=1.7), fn.subsample(images)

    own, usual = run(graph).run()
    for k, image in enumerate(IMAGES):
        np.testing.assert_array_equal(own.at(k), subsampled(image, steps[k], 1.7))
        np.testing.assert_array_equal(usual.at(k), subsampled(image, 2, 1.0))
    assert own.layout() == "HWC"


def test_a_pixel_operator_in_dynamic_mode():
    out = ndd.subsample(ndd.as_tensor(IMAGES[0], layout="HWC"), step=3, gain=0.5)
    np.testing.assert_array_equal(np.asarray(out), subsampled(IMAGES[0], 3, 0.5))


def test_the_error_of_a_plan_is_that_of_its_sample():
    def graph():
        step = fn.external_source(lambda: np.int32([1, 1, 0, 1, 1, 1]))
        return (fn.subsample(fn.external_source(lambda: IMAGES, layout="HWC"), step=step),)

    with pytest.raises(ArgumentValueError, match="`step` must be at least 1, got 0") as caught:
        run(graph).run()
    assert "sample 2" in str(caught.value)
    assert "sample 1" not in str(caught.value)


def test_a_reader_in_a_pipeline(records):
    def graph():
        return fn.readers.records(path=records, name="maps")

    pipe = run(graph, batch_size=4)
    data, labels = pipe.run()
    assert pipe.reader_meta("maps")["epoch_size"] == 6
    assert np.asarray(labels).ravel().tolist() == [10, 11, 12, 13]
    assert bytes(data.at(1)) == pfm(maps()[1], ">")
    offset = json.loads(Path(f"{records}.json").read_text())[1][0]
    assert data[1].source_info() == labels[1].source_info() == f"{records} at index {offset}"


def test_a_reader_shuffles_shards_and_goes_on_from_checkpoints(records):
    def graph():
        return fn.readers.records(
            path=records, name="maps", random_shuffle=True, num_shards=2, shard_id=1
        )

    def labels(pipe):
        return np.asarray(pipe.run()[1]).ravel().tolist()

    pipe = run(graph, batch_size=3, enable_checkpointing=True)
    first = labels(pipe)
    state = pipe.checkpoint()
    second = labels(pipe)
    assert sorted(first + second) == list(range(10, 16))
    resumed = run(graph, batch_size=3, enable_checkpointing=True, checkpoint=state)
    assert labels(resumed) == second


def test_a_reader_in_dynamic_mode(records):
    reader = ndd.readers.Records(path=records)
    batches = list(reader.next_epoch(batch_size=3))
    labels = [int(np.asarray(label)[0]) for _, batch in batches for label in batch]
    assert labels == list(range(10, 16))


@pytest.mark.parametrize(
    ("damage", "message"),
    [
        (lambda records: records[:-4], "before the end of the extent"),
        (lambda records: records[:-4] + b"abcd", "cannot be inflated"),
    ],
    ids=["cut off", "overwritten"],
)
def test_a_bad_record_is_replaced(tmp_path, damage, message):
    path = tmp_path / "bad"
    write_records(path, [b"ab", b"cde", b"fghi"], [1, 2, 3])
    path.write_bytes(damage(path.read_bytes()))

    def graph():
        return fn.readers.records(path=str(path))

    with pytest.raises(BadSampleError, match=message) as caught:
        run(graph, batch_size=3).run()
    assert f'sample 2 of the batch, read from "{path} at index' in str(caught.value)
    data, labels = run(graph, batch_size=3, on_bad_sample="replace").run()
    pairs = [(bytes(data.at(k)), int(labels.at(k)[0])) for k in range(3)]
    assert pairs[:2] == [(b"ab", 1), (b"cde", 2)]
    assert pairs[2] in pairs[:2]


def test_a_decoder(records):
    def graph():
        encoded, _ = fn.readers.records(path=records)
        return (fn.decoders.pfm(encoded),)

    (out,) = run(graph).run()
    assert (out.dtype, out.layout()) == (types.FLOAT, "HWC")
    for k, pixels in enumerate(maps()):
        np.testing.assert_array_equal(out.at(k), pixels)


@pytest.mark.parametrize(
    ("content", "match"),
    [
        (b"P6\n1 1\n255\nabc", "does not begin with the header of a PFM file"),
        (pfm(maps()[0])[:-3], "has 137 of 140 bytes of pixels"),
    ],
    ids=["another format", "cut off"],
)
def test_what_a_decoder_cannot_read_is_one_sample(content, match):
    contents = [np.frombuffer(c, np.uint8) for c in (pfm(maps()[0]), content, pfm(maps()[1]))]

    def graph():
        return (fn.decoders.pfm(fn.external_source(lambda: contents)),)

    with pytest.raises(BadSampleError, match=match) as caught:
        run(graph, batch_size=3).run()
    assert "sample 1" in str(caught.value)
    (out,) = run(graph, batch_size=3, on_bad_sample="replace").run()
    np.testing.assert_array_equal(out.at(2), maps()[1])


def test_all_together(names, records):
    pipe = names["depth"](records, device_id=None, seed=1)
    for _ in range(3):
        out, labels = pipe.run()
        for k, label in enumerate(np.asarray(labels).ravel()):
            levels = np.rint(maps()[label - 10] * np.float32(255)).astype(np.uint8)
            np.testing.assert_array_equal(out.at(k), subsampled(levels, 2, 1.5))
