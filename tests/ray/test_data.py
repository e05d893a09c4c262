"""Ray Data: pipelines in `map_batches`, data sets as sources and as a reader."""

from __future__ import annotations

import io
import itertools

import numpy as np
import pytest

pytest.importorskip("ray")

import ray

from headrace import fn, pipeline_def
from headrace.errors import ArgumentTypeError, ArgumentValueError, UsageError
from headrace.kernels.cpu import opencv
from headrace.plugin.pytorch import DALIGenericIterator
from headrace.plugin.ray import DatasetSource, LastBatchPolicy, PipelineMap, RayIterator

pytestmark = [
    pytest.mark.usefixtures("cluster"),
    # Of Ray Data and what it uses.
    pytest.mark.filterwarnings("ignore::FutureWarning", "ignore::DeprecationWarning"),
]

ROWS = 23
cv2 = opencv.cv2()
SETTINGS = {"num_threads": 1, "device_id": None, "seed": 2}


@pytest.fixture(scope="module")
def dataset(cluster):
    made = ray.data.from_items(
        [
            {"number": k, "bytes": bytes([k] * (k + 1)), "vector": np.full(3, k, np.float32)}
            for k in range(ROWS)
        ],
        override_num_blocks=3,
    )
    return made.materialize()


def transform():
    @pipeline_def(batch_size=4, **SETTINGS)
    def definition():
        data = fn.external_source(name="bytes")
        vector = fn.external_source(name="vector")
        return fn.pad(data, shape=ROWS), vector * 2, data

    return definition()


def test_a_pipeline_maps_batches(dataset):
    mapped = dataset.map_batches(
        PipelineMap,
        fn_constructor_args=(transform, ["padded", "double", "same"]),
        batch_size=6,
        concurrency=1,
        num_cpus=0.2,
    )
    rows = sorted(mapped.take_all(), key=lambda row: row["number"])
    assert [row["number"] for row in rows] == list(range(ROWS))
    for k, row in enumerate(rows):
        np.testing.assert_array_equal(row["padded"], [k] * (k + 1) + [0] * (ROWS - k - 1))
        np.testing.assert_array_equal(row["double"], np.full(3, 2 * k, np.float32))
        np.testing.assert_array_equal(row["same"], [k] * (k + 1))
        assert "vector" not in row


def test_wrong_maps_are_refused():
    with pytest.raises(ArgumentTypeError, match="function that makes the pipeline"):
        PipelineMap(transform(), ["a"])
    with pytest.raises(ArgumentValueError, match="3 outputs"):
        PipelineMap(transform, ["a"])
    with pytest.raises(ArgumentValueError, match=r"lacks \['vector'\]"):
        PipelineMap(transform, ["a", "b", "c"])({"bytes": np.array([b"x"], object)})

    @pipeline_def(batch_size=2, **SETTINGS)
    def with_source():
        return fn.external_source(source=[np.zeros((2, 1))]) + fn.external_source(name="x")

    with pytest.raises(UsageError, match="of its own beside them"):
        PipelineMap(with_source, ["a"])


def test_a_data_set_is_a_source(dataset):
    @pipeline_def(batch_size=5, **SETTINGS)
    def definition():
        source = DatasetSource(dataset, ["number", "vector"], 5)
        number, vector = fn.external_source(source=source, num_outputs=2, cycle="raise")
        return number, vector

    iterator = DALIGenericIterator(definition(), ["number", "vector"])
    for _ in range(2):
        found = [batch["number"].tolist() for (batch,) in iterator]
        assert sorted(itertools.chain(*found)) == list(range(ROWS))
        assert [len(each) for each in found] == [5, 5, 5, 5, 3]
    with pytest.raises(ArgumentTypeError, match=r"expected a `ray\.data\.Dataset`"):
        DatasetSource([1], "number", 5)


@pytest.mark.parametrize("on_cluster", [False, True])
def test_a_data_set_has_a_reader(dataset, on_cluster):
    @pipeline_def(batch_size=4, **SETTINGS)
    def definition(shard):
        number, data = fn.readers.ray(
            dataset=dataset,
            columns=["number", "bytes"],
            name="reader",
            random_shuffle=True,
            initial_fill=9,
            shard_id=shard,
            num_shards=2,
            stick_to_shard=True,
        )
        return number, fn.pad(data, shape=ROWS)

    names, how = ["number", "data"], {"reader_name": "reader"}
    how["last_batch_policy"] = LastBatchPolicy.PARTIAL
    seen = []
    for shard in range(2):
        if on_cluster:
            workers = {"num_workers": 2, "resources": {"num_cpus": 0.2}}
            iterator = RayIterator(definition(shard), names, **how, **workers)
        else:
            iterator = DALIGenericIterator(definition(shard), names, **how)
        for batch in iterator:
            for number, data in zip(batch[0]["number"].tolist(), batch[0]["data"], strict=True):
                seen.append(number)
                assert data.tolist() == [number] * (number + 1) + [0] * (ROWS - number - 1)
    assert sorted(seen) == list(range(ROWS))
    assert seen != sorted(seen)


@pytest.mark.parametrize("workers", ["threads", "processes"])
def test_reader_takes_columns_of_every_kind(cluster, workers):
    rows = [
        {
            "image": cv2.imencode(".png", np.full((2 + k, 3, 3), k, np.uint8))[1].tobytes(),
            "vector": np.full(3, k, np.float32),
            "matrix": np.full((k + 1, 2), k, np.int16),
            "list": list(range(k)),
            "text": "x" * k,
        }
        for k in range(7)
    ]
    made = ray.data.from_items(rows, override_num_blocks=2)

    @pipeline_def(batch_size=7, device_id=None, num_threads=2, workers=workers)
    def definition():
        image, *others = fn.readers.ray(dataset=made, columns=list(rows[0]))
        return fn.decoders.image(image), *others

    found = [[np.asarray(v) for v in output] for output in definition().run()]
    order = [int(image[0, 0, 0]) for image in found[0]]
    assert sorted(order) == list(range(7))
    for place, k in enumerate(order):
        image, vector, matrix, numbers, text = (output[place] for output in found)
        assert image.shape == (2 + k, 3, 3)
        np.testing.assert_array_equal(vector, rows[k]["vector"], strict=True)
        np.testing.assert_array_equal(matrix, rows[k]["matrix"], strict=True)
        np.testing.assert_array_equal(numbers, np.arange(k), strict=True)
        assert text.item() == "x" * k


def test_blocks_of_another_type_are_bad_samples(cluster):
    made = ray.data.from_items([{"a": 1}]).union(ray.data.from_items([{"a": 0.5}]))
    pipe = pipeline_def(lambda: fn.readers.ray(dataset=made, columns="a"))(
        batch_size=2, on_bad_sample="replace", **SETTINGS
    )
    pipe.run()
    assert pipe.bad_samples
    assert all("The column 'a' has 0 dimensions of" in str(bad) for bad in pipe.bad_samples)


def test_reader_names_what_is_missing(dataset):
    @pipeline_def(batch_size=4, **SETTINGS)
    def definition(data, columns):
        return fn.readers.ray(dataset=data, columns=columns)

    with pytest.raises(ArgumentValueError, match=r"not \['numbr'\]"):
        definition(dataset, ["numbr"]).build()
    with pytest.raises(ArgumentTypeError, match="DatasetSource"):
        definition(io.BytesIO(), ["number"]).build()
