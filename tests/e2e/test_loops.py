"""Loops as users write them: left halfway, started again, several at once, dense and ragged."""

from __future__ import annotations

import itertools

import numpy as np
import pytest
import torch

from headrace import Pipeline, fn, types
from headrace.plugin.pytorch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    LastBatchPolicy,
    feed_ndarray,
)
from tests.e2e.support import one_file_a_class

FILES, BATCH = 23, 4
FILL, DROP, PARTIAL = LastBatchPolicy.FILL, LastBatchPolicy.DROP, LastBatchPolicy.PARTIAL


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return str(one_file_a_class(tmp_path_factory.mktemp("files"), FILES, height=40, width=50))


def make(root, *, resized=True, threads=2, depth=2, batch_size=BATCH, **reader):
    pipe = Pipeline(batch_size, threads, None, seed=5, prefetch_queue_depth=depth)
    with pipe:
        jpegs, labels = fn.readers.file(file_root=root, name="reader", **reader)
        images = fn.decoders.image(jpegs)
        if resized:
            images = fn.crop_mirror_normalize(
                fn.resize(images, size=[16, 16]), dtype=types.FLOAT, output_layout="CHW"
            )
        pipe.set_outputs(images, labels)
    return pipe


def loader(pipelines, policy=PARTIAL, **options):
    return DALIClassificationIterator(
        pipelines, reader_name="reader", last_batch_policy=policy, **options
    )


def labels_of(step):
    return [k for part in step for k in part["label"].flatten().tolist()]


SHUFFLED = {"random_shuffle": True, "pad_last_batch": True}


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("depth", [1, 3])
@pytest.mark.parametrize("auto_reset", [True, False])
@pytest.mark.parametrize("taken", range(7))
def test_left_halfway_and_started_again(taken, auto_reset, depth, root):
    uninterrupted = loader(make(root, **SHUFFLED))
    expected = [[k for step in uninterrupted for k in labels_of(step)] for _ in range(3)]

    it = loader(make(root, depth=depth, **SHUFFLED), auto_reset=auto_reset)
    first = [labels_of(step) for step in itertools.islice(it, taken)]
    assert [k for batch in first for k in batch] == expected[0][: taken * BATCH]
    # What was left is over: the next loop is the next epoch, or this one if nothing was taken.
    following = [k for step in it for k in labels_of(step)]
    assert following == expected[1 if taken else 0]
    assert [k for step in it for k in labels_of(step)] == expected[2 if taken else 1]


@pytest.mark.parametrize("auto_reset", [True, False])
def test_reset_in_the_middle(auto_reset, root):
    it = loader(make(root, **SHUFFLED), auto_reset=auto_reset)
    seen = []
    for taken in (3, 1, 5, 0, 2):
        seen.append([labels_of(next(it)) for _ in range(taken)])
        it.reset()
        it.reset()  # nothing was taken since
        assert len(it) == 6
    assert sorted(k for step in it for k in labels_of(step)) == list(range(FILES))


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("auto_reset", [True, False])
@pytest.mark.parametrize("padded", [True, False])
@pytest.mark.parametrize("policy", LastBatchPolicy, ids=lambda policy: policy.name)
@pytest.mark.parametrize("shards", [1, 2, 3])
def test_length_at_every_moment(shards, policy, padded, auto_reset, root):
    """It is the number of batches of the epoch under way, or of the next where one has ended."""
    pipelines = [
        make(root, shard_id=k, num_shards=shards, pad_last_batch=padded) for k in range(shards)
    ]
    it = loader(pipelines, policy, auto_reset=auto_reset)
    for epoch in range(5):
        before = len(it)
        during = [len(it) for _ in it]
        assert during == [before] * before, f"epoch {epoch}"
    for taken in (1, 2):
        it.reset()
        before = len(it)
        for _ in range(min(taken, before)):
            next(it)
            assert len(it) == before
        assert len(list(it)) > 0


def test_two_iterators_at_once(root):
    one, other = loader(make(root, **SHUFFLED)), loader(make(root, **SHUFFLED))
    alone = [labels_of(step) for step in loader(make(root, **SHUFFLED))]
    pairs = [(labels_of(a), labels_of(b)) for a, b in zip(one, other, strict=True)]
    assert pairs == [(batch, batch) for batch in alone]
    training, validation = loader(make(root, **SHUFFLED)), loader(make(root, pad_last_batch=True))
    for _ in range(2):
        trained = []
        for step in training:
            trained += labels_of(step)
            if len(trained) == 2 * BATCH:
                shown = [k for other in validation for k in labels_of(other)]
                assert shown == list(range(FILES))
        assert sorted(trained) == list(range(FILES))


@pytest.mark.parametrize("stick", [True, False])
@pytest.mark.parametrize("policy", LastBatchPolicy, ids=lambda policy: policy.name)
def test_shards(policy, stick, root):
    shards = 3
    bounds = [FILES * k // shards for k in range(shards + 1)]
    pipelines = [
        make(root, shard_id=k, num_shards=shards, stick_to_shard=stick, pad_last_batch=True)
        for k in range(shards)
    ]
    it = loader(pipelines, policy)
    for epoch in range(4):
        parts = [[], [], []]
        for step in it:
            assert len(step) == shards
            for k, part in enumerate(step):
                assert part["data"].shape[0] == part["label"].shape[0]
                parts[k] += part["label"].flatten().tolist()
        for k, part in enumerate(parts):
            shard = k if stick else (k + epoch) % shards
            whole = list(range(bounds[shard], bounds[shard + 1]))
            if policy is PARTIAL:
                assert part == whole
            elif policy is FILL:
                assert part == (whole + [whole[-1]] * 8)[:8]
            else:
                assert part == whole[:BATCH]  # the smallest shard of 7 has one full batch


@pytest.mark.parametrize("threads", [1, 3])
def test_ragged_images(threads, root):
    pipe = make(root, resized=False, threads=threads)
    reference = make(root, resized=False, batch_size=FILES).run()[0]
    it = DALIRaggedIterator(
        pipe,
        ["image", "label"],
        reader_name="reader",
        output_types=[DALIRaggedIterator.SPARSE_LIST_TAG, DALIRaggedIterator.DENSE_TAG],
        last_batch_policy=PARTIAL,
    )
    shown = []
    for (step,), count in zip(it, [4, 4, 4, 4, 4, 3], strict=True):
        assert len(step["image"]) == len(step["label"]) == count
        for image, label in zip(step["image"], step["label"], strict=True):
            assert image.dtype == torch.uint8
            np.testing.assert_array_equal(image.numpy(), reference.at(int(label)))
            shown.append(int(label))
    assert shown == list(range(FILES))
    assert len({reference.at(k).shape for k in range(FILES)}) > 5


def test_sparse_images(root):
    pipe = make(root, resized=False)
    reference = make(root, resized=False).run()[0]
    it = DALIRaggedIterator(
        pipe, ["image", "label"], reader_name="reader", output_types=["sparse_coo", "dense"]
    )
    image = next(it)[0]["image"]
    sizes = np.array(reference.shape()).max(axis=0)
    assert image.is_sparse
    assert tuple(image.shape) == (BATCH, *sizes)
    dense = image.to_dense().numpy()
    for k in range(BATCH):
        h, w, _ = reference.at(k).shape
        np.testing.assert_array_equal(dense[k, :h, :w], reference.at(k))
        assert not dense[k, h:].any()
        assert not dense[k, :, w:].any()


def test_feed_ndarray(root):
    pipe = make(root)
    images, labels = pipe.run()
    whole = torch.empty((BATCH, 3, 16, 16))
    assert feed_ndarray(images, whole) is whole
    numbers = torch.empty((BATCH, 1), dtype=torch.int32)
    feed_ndarray(labels.as_tensor(), numbers)
    assert numbers.flatten().tolist() == [0, 1, 2, 3]
    one = torch.empty((3, 16, 16))
    for k in range(BATCH):
        feed_ndarray(images[k], one)
        assert torch.equal(one, whole[k])
    copy = whole.clone()
    pipe.run()  # the outputs' memory is used again, the tensor's own is not
    pipe.run()
    assert torch.equal(whole, copy)
    for wrong, error, words in (
        (torch.empty((3, 3, 16, 16)), ValueError, "does not match"),
        (copy.double(), TypeError, "doesn't match"),
    ):
        with pytest.raises(error, match=words):
            feed_ndarray(images, wrong)


@pytest.mark.parametrize("size", [12, 10])
def test_iterators_of_external_sources(size):
    """An epoch is what the source has, or `size` samples; it may be left halfway."""

    class Source:
        def __iter__(self):
            self.given = 0
            return self

        def __next__(self):
            if self.given == 12:
                raise StopIteration
            self.given += 4
            return [np.array([self.given - 4 + k], np.int32) for k in range(4)]

    pipe = Pipeline(4, 2, None)
    with pipe:
        pipe.set_outputs(fn.external_source(source=Source(), cycle="raise"))
    if size == 12:
        it = DALIGenericIterator(pipe, ["x"], auto_reset=True)
    else:
        with pytest.warns(Warning, match="reader_name"):
            it = DALIGenericIterator(
                pipe, ["x"], size=size, auto_reset=True, last_batch_padded=True,
                last_batch_policy=PARTIAL,
            )  # fmt: skip
    whole = [[0, 1, 2, 3], [4, 5, 6, 7], [8, 9, 10, 11][: size - 8]]
    for _ in range(2):
        assert [step[0]["x"].flatten().tolist() for step in it] == whole
        for step in it:
            assert step[0]["x"].flatten().tolist() == whole[0]
            break


def test_a_loop_over_the_pipeline_itself(root):
    pipe = make(root)
    shown = []
    for images, labels in (pipe.run() for _ in range(6)):
        assert images.layout() == "CHW"
        assert [images[k].source_info() for k in range(BATCH)] == [
            labels[k].source_info() for k in range(BATCH)
        ]
        shown += labels.as_array().ravel().tolist()
    assert shown == [*range(FILES), 0]
