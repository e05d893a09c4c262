"""Batches of an iterator on a cluster are those of the same iterator without one, byte by byte."""

from __future__ import annotations

import itertools

import numpy as np
import pytest

pytest.importorskip("ray")

from headrace import Pipeline, fn, pipeline_def, types
from headrace.plugin.pytorch import DALIGenericIterator, DALIRaggedIterator
from headrace.plugin.ray import LastBatchPolicy, RayIterator, distribute
from tests.ray.iterators import SETTINGS, assert_same, epochs

pytestmark = pytest.mark.usefixtures("cluster")


def training(root, **reader):
    @pipeline_def(batch_size=4, **SETTINGS)
    def definition():
        data, labels = fn.readers.file(file_root=root, name="reader", **reader)
        images = fn.decoders.image_random_crop(data)
        images = fn.resize(images, size=(16, 12), name="resize")
        images = fn.crop_mirror_normalize(
            images, mirror=fn.random.coin_flip(), dtype=types.FLOAT, output_layout="CHW"
        )
        noise = fn.random.normal(labels)
        return images, labels, noise

    return definition()


class Counted:
    """A source that can be asked in order only."""

    def __iter__(self):
        rng = np.random.default_rng(3)
        for k in range(7):
            yield rng.integers(0, 9, (4 - (k == 6), 3, 5), np.uint8)


def from_source(root):
    @pipeline_def(batch_size=4, **SETTINGS)
    def definition():
        values = fn.external_source(source=Counted(), cycle="raise")
        moved = values + fn.random.uniform(range=(0, 1))
        return fn.normalize(moved), values, fn.permute_batch(values, indices=fn.batch_permutation())

    return definition()


def with_branches(root):
    @pipeline_def(batch_size=4, enable_conditionals=True, **SETTINGS)
    def definition():
        data, labels = fn.readers.file(file_root=root, name="reader", pad_last_batch=True)
        images = fn.resize(fn.decoders.image(data), size=(8, 8))
        if labels[0] == 0:
            images = fn.flip(images)
        else:
            images = fn.rotate(images, angle=fn.random.uniform(range=(-40, 40)), keep_size=True)
        scale = 3.0
        return fn.cast(images, dtype=types.FLOAT) * scale, labels, labels

    return definition()


def with_function(root):
    added = np.uint8(3)  # travels with the function

    @pipeline_def(batch_size=4, workers="processes", **SETTINGS)
    def definition():
        data, labels = fn.readers.file(file_root=root, name="reader", random_shuffle=True)
        images = fn.resize(fn.decoders.image(data), size=(6, 6))
        images = fn.python_function(images, function=lambda image: image[::-1] + added)
        return images, labels, labels

    return definition()


CASES = {
    "shuffled": (
        lambda root: training(root, random_shuffle=True, initial_fill=6),
        {"reader_name": "reader", "last_batch_policy": LastBatchPolicy.PARTIAL},
        {"num_workers": 3},
    ),
    "shard, everything in workers": (
        lambda root: training(root, shuffle_after_epoch=True, num_shards=2, shard_id=1),
        {"reader_name": "reader", "last_batch_policy": LastBatchPolicy.FILL},
        {"num_workers": 2, "cut": "outputs"},
    ),
    "elsewhere only": (
        lambda root: training(root, pad_last_batch=True),
        {"reader_name": "reader", "last_batch_policy": LastBatchPolicy.DROP},
        {"num_workers": 1, "resources": {"far": 1}},
    ),
    "source": (from_source, {}, {"num_workers": 2}),
    "source, everything on the trainer that can": (from_source, {}, {"num_workers": 2, "cut": []}),
    "branches": (with_branches, {"reader_name": "reader"}, {"num_workers": 2}),
    "function": (with_function, {"reader_name": "reader"}, {"num_workers": 2, "cut": "outputs"}),
}


@pytest.mark.parametrize("case", CASES)
def test_same_batches(images, case):
    make, how, workers = CASES[case]
    names = ["one", "two", "three"]
    expected = epochs(DALIGenericIterator(make(images), names, **how))
    iterator = RayIterator(make(images), names, **how, **workers)
    assert_same(epochs(iterator), expected)


def test_other_iterators_take_a_distributed_pipeline(images):
    @pipeline_def(batch_size=5, **SETTINGS)
    def ragged():
        data, labels = fn.readers.file(file_root=images, name="reader")
        return fn.decoders.image(data), labels

    def all_of(pipe):
        names, types = ["images", "labels"], ["sparse_list", "dense"]
        iterator = DALIRaggedIterator(pipe, names, output_types=types, reader_name="reader")
        return [[t.clone() for t in batch["images"]] for (batch,) in iterator]

    for ours, theirs in zip(all_of(distribute(ragged(), 2)), all_of(ragged()), strict=True):
        assert all((a == b).all() for a, b in zip(ours, theirs, strict=True))


def test_batches_are_the_users_to_change(images):
    iterator = RayIterator(
        training(images), ["x", "y", "z"], reader_name="reader", cut="outputs", num_workers=1
    )
    ((first,),) = itertools.islice(iterator, 1)
    kept = {name: value.clone() for name, value in first.items()}
    for (batch,) in iterator:
        for value in batch.values():
            value.zero_()
    assert all((first[name] == kept[name]).all() for name in first)


def test_a_copy_of_the_pipeline_is_on_the_cluster_too(images):
    """Datasets of TensorFlow make one for each of their iterators."""
    pipe = distribute(training(images), 1)
    copies = [Pipeline._copy_of(pipe, {}, {}) for _ in range(2)]
    outputs = [[np.asarray(batch.as_tensor()) for batch in copy.run()] for copy in copies]
    (images_, labels, noise) = training(images).run()
    for found in outputs:
        for one, other in zip(found, (images_, labels, noise), strict=True):
            np.testing.assert_array_equal(one, np.asarray(other.as_tensor()))
    assert [copy.counters()["workers"] for copy in copies] == ["ray", "ray"]
