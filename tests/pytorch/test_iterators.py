"""PyTorch iterators on real pipelines."""

from __future__ import annotations

import numpy as np
import pytest
import torch
from torch.utils.data import default_collate

from headrace import errors, fn, pipeline_def
from headrace.pipeline import Pipeline
from headrace.plugin.pytorch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
    LastBatchPolicy,
)

PARTIAL = LastBatchPolicy.PARTIAL


@pytest.fixture
def files(tmp_path):
    names = []
    for k in range(7):
        path = tmp_path / f"{k}.bin"
        path.write_bytes(bytes([k]) * 5)
        names.append(str(path))
    return names


def file_pipeline(files, shard=0, shards=1, batch_size=2, options=None, **arguments):
    pipe = Pipeline(batch_size, 2, None, **(options or {}))
    with pipe:
        data, label = fn.readers.file(
            files=files, name="reader", shard_id=shard, num_shards=shards, **arguments
        )
        pipe.set_outputs(data, label)
    return pipe


def source_pipeline(batches, batch_size=None, **arguments):
    pipe = Pipeline(batch_size or len(batches[0]), 1, None)
    with pipe:
        pipe.set_outputs(fn.external_source(source=batches, batch=True, **arguments))
    return pipe


def labels(it, number=0):
    return [step[number]["label"].ravel().tolist() for step in it]


def test_classification(files):
    it = DALIClassificationIterator(file_pipeline(files), reader_name="reader")
    step = next(it)
    assert isinstance(step, list)
    assert list(step[0]) == ["data", "label"]
    assert step[0]["data"].tolist() == [[0] * 5, [1] * 5]
    assert step[0]["data"].dtype == torch.uint8
    assert step[0]["label"].dtype == torch.int32
    assert step[0]["label"].tolist() == [[0], [1]]


@pytest.mark.parametrize(
    ("policy", "expected"),
    [
        ("FILL", [[[0, 1], [2, 3], [4, 5], [6, 0]], [[1, 2], [3, 4], [5, 6]]]),
        ("DROP", [[[0, 1], [2, 3], [4, 5]], [[1, 2], [3, 4], [5, 6]]]),
        ("PARTIAL", [[[0, 1], [2, 3], [4, 5], [6]], [[1, 2], [3, 4], [5, 6], [0]]]),
    ],
)
def test_policies(files, policy, expected):
    it = DALIClassificationIterator(
        file_pipeline(files), reader_name="reader", last_batch_policy=LastBatchPolicy[policy]
    )
    for epoch in expected:
        assert len(it) == len(epoch)
        assert labels(it) == epoch


def test_one_dictionary_for_each_pipeline(files):
    pipelines = [file_pipeline(files, k, 2, pad_last_batch=True) for k in range(2)]
    it = DALIGenericIterator(
        pipelines, ["bytes", "label"], reader_name="reader", last_batch_policy=PARTIAL
    )
    steps = list(it)
    assert [[d["label"].ravel().tolist() for d in step] for step in steps] == [
        [[0, 1], [3, 4]],
        [[2], [5, 6]],
    ]
    assert steps[1][0]["bytes"].tolist() == [[2] * 5]


def test_break_and_reset_begin_a_new_epoch(files):
    it = DALIClassificationIterator(file_pipeline(files), reader_name="reader")
    for _ in it:
        break
    assert labels(it) == [[0, 1], [2, 3], [4, 5], [6, 0]]
    next(iter(it))
    it.reset()
    assert len(it) == 4
    assert labels(it) == [[0, 1], [2, 3], [4, 5], [6, 0]]


def test_break_with_shuffling_begins_the_epoch_that_would_have_come(files):
    def make():
        pipe = file_pipeline(files, options={"seed": 3}, random_shuffle=True, pad_last_batch=True)
        return DALIClassificationIterator(pipe, reader_name="reader", last_batch_policy=PARTIAL)

    whole, broken = make(), make()
    epochs = [labels(whole) for _ in range(3)]
    for _ in broken:
        break
    assert labels(broken) == epochs[1]
    assert labels(broken) == epochs[2]


def test_shards_after_a_break(files):
    pipelines = [file_pipeline(files, k, 2) for k in range(2)]
    it = DALIGenericIterator(pipelines, ["data", "label"], reader_name="reader")
    next(it)
    it.reset()
    step = next(it)
    assert [d["label"].ravel().tolist() for d in step] == [[3, 4], [0, 1]]


def test_batches_stay_valid(files):
    it = DALIClassificationIterator(file_pipeline(files), reader_name="reader", auto_reset=True)
    kept = [step[0]["data"] for _ in range(5) for step in it]
    expected = [t.clone() for t in kept]
    for _ in it:
        pass
    assert all(torch.equal(a, b) for a, b in zip(kept, expected, strict=True))
    kept[0][:] = 99  # the user's own memory
    assert kept[1].tolist() == [[2] * 5, [3] * 5]


@pytest.mark.sweep
@pytest.mark.parametrize("bad", [{3}, {0, 1}, {6}, {2, 5, 6}])
@pytest.mark.parametrize("pad", [False, True])
@pytest.mark.parametrize("threads", [1, 3])
def test_skipped_samples(files, bad, pad, threads):
    names = [name if k not in bad else name + ".gone" for k, name in enumerate(files)]
    pipe = Pipeline(3, threads, None, on_bad_sample="skip")
    with pipe:
        pipe.set_outputs(*fn.readers.file(files=names, name="reader", pad_last_batch=pad))
    it = DALIClassificationIterator(pipe, reader_name="reader", last_batch_policy=PARTIAL)
    for _ in range(2 if pad else 1):
        shown = [k for batch in labels(it) for k in batch]
        assert sorted(shown) == sorted(set(range(7)) - bad)


def test_bad_sample_raises_and_the_next_batch_comes(files):
    names = [*files[:3], files[3] + ".gone", *files[4:]]
    it = DALIClassificationIterator(file_pipeline(names), reader_name="reader")
    assert next(it)[0]["label"].ravel().tolist() == [0, 1]
    with pytest.raises(errors.BadSampleError, match="gone"):
        next(it)
    assert labels_left(it) == [[4, 5], [6, 0]]


def labels_left(it):
    found = []
    while (step := next(it, None)) is not None:
        found.append(step[0]["label"].ravel().tolist())
    return found


def test_epoch_of_an_external_source():
    batches = [[np.full((2,), 10 * k + i, np.float32) for i in range(3)] for k in range(4)]
    it = DALIGenericIterator(source_pipeline(batches, cycle="raise"), ["x"])
    for _ in range(3):
        assert [step[0]["x"][0, 0].item() for step in it] == [0, 10, 20, 30]


def test_break_of_an_external_source():
    batches = [[np.full((2,), k, np.float32)] for k in range(4)]
    it = DALIGenericIterator(source_pipeline(batches, cycle="raise"), ["x"])
    for _ in it:
        break
    assert [step[0]["x"][0, 0].item() for step in it] == [0, 1, 2, 3]


def test_size():
    batches = [[np.array([3 * k + i]) for i in range(3)] for k in range(40)]
    pipe = source_pipeline(batches)
    with pytest.warns(Warning, match="reader_name"):
        it = DALIGenericIterator(pipe, ["x"], size=7, last_batch_policy=PARTIAL)
    assert len(it) == 3
    assert [step[0]["x"].ravel().tolist() for step in it] == [[0, 1, 2], [3, 4, 5], [6]]


def test_size_cuts_the_last_pipelines():
    pipelines = [source_pipeline([[np.array([i])] * 2 for i in range(9)]) for _ in range(3)]
    with pytest.warns(Warning, match="reader_name"):
        it = DALIGenericIterator(pipelines, ["x"], size=9, last_batch_policy=PARTIAL)
    assert [[len(d["x"]) for d in step] for step in it] == [[2, 2, 2], [2, 1]]


def test_ragged_output_in_a_dense_iterator():
    pipe = source_pipeline([[np.zeros(2), np.zeros(3)]] * 5)
    it = DALIGenericIterator(pipe, ["boxes"])
    with pytest.raises(errors.ShapeError, match=r'"boxes".*DALIRaggedIterator'):
        next(it)


def test_ragged():
    samples = [np.array([1, 2, 3], np.int32), np.array([4], np.int32)]
    pipe = Pipeline(2, 1, None)
    with pipe:
        outputs = [fn.external_source(source=lambda: samples, batch=True) for _ in range(2)]
        dense = fn.external_source(source=lambda: [np.zeros(2)] * 2, batch=True)
        pipe.set_outputs(*outputs, dense)
    it = DALIRaggedIterator(
        pipe, ["list", "coo", "dense"], output_types=["sparse_list", "sparse_coo", "dense"]
    )
    step = next(it)[0]
    assert [t.tolist() for t in step["list"]] == [[1, 2, 3], [4]]
    assert step["coo"].to_dense().tolist() == [[1, 2, 3], [4, 0, 0]]
    assert step["dense"].shape == (2, 2)


@pytest.mark.parametrize("mode", ["reader", "size"])
def test_ragged_partial(files, mode):
    pipe = file_pipeline(files, batch_size=4)
    tags = [DALIRaggedIterator.SPARSE_LIST_TAG, DALIRaggedIterator.DENSE_TAG]
    arguments = {"output_types": tags, "last_batch_policy": PARTIAL}
    if mode == "reader":
        it = DALIRaggedIterator(pipe, ["data", "label"], reader_name="reader", **arguments)
    else:
        with pytest.warns(Warning, match="reader_name"):
            it = DALIRaggedIterator(pipe, ["data", "label"], size=7, **arguments)
    steps = list(it)
    assert [len(step[0]["data"]) for step in steps] == [4, 3]
    assert steps[1][0]["label"].ravel().tolist() == [4, 5, 6]


def test_ragged_defaults_to_dense(files):
    it = DALIRaggedIterator(file_pipeline(files), ["data", "label"], reader_name="reader")
    assert next(it)[0]["data"].shape == (2, 5)


def test_tags():
    assert DALIRaggedIterator.DENSE_TAG == "dense"
    assert DALIRaggedIterator.SPARSE_LIST_TAG == "sparse_list"
    assert DALIRaggedIterator.SPARSE_COO_TAG == "sparse_coo"


def test_wrong_arguments(files):
    with pytest.raises(errors.ArgumentValueError, match="distinct"):
        DALIGenericIterator(file_pipeline(files), ["a", "a"], reader_name="reader")
    with pytest.raises(errors.ArgumentValueError, match="2 outputs"):
        DALIGenericIterator(file_pipeline(files), ["a"], reader_name="reader")
    with pytest.raises(errors.ArgumentValueError, match=r"'sparse'.*'sparse_coo'"):
        DALIRaggedIterator(
            file_pipeline(files), ["a", "b"], reader_name="reader", output_types=["dense", "sparse"]
        )
    with pytest.raises(errors.ArgumentValueError, match="1 tags for the 2 names"):
        DALIRaggedIterator(
            file_pipeline(files), ["a", "b"], reader_name="reader", output_types=["dense"]
        )
    with pytest.raises(RuntimeError, match="nobody"):
        DALIGenericIterator(file_pipeline(files), ["a", "b"], reader_name="nobody")


def test_pipelines_belong_to_their_iterator(files):
    pipe = file_pipeline(files)
    it = DALIClassificationIterator(pipe, reader_name="reader")
    steps = []
    for use in (pipe.run, pipe.schedule_run, pipe.share_outputs, pipe.outputs):
        with pytest.raises(errors.UsageError, match="Mixing"):
            use()
        with pytest.raises(errors.UsageError, match="Mixing"):
            pipe.release_outputs()
        steps.append(next(it)[0]["label"].ravel().tolist())
    assert steps == [[0, 1], [2, 3], [4, 5], [6, 0]]
    pipe = file_pipeline(files)
    pipe.schedule_run()
    with pytest.raises(errors.UsageError, match="Mixing"):
        DALIClassificationIterator(pipe, reader_name="reader")
    pipe = file_pipeline(files)
    pipe.run()
    with pytest.raises(errors.UsageError, match="Mixing"):
        DALIClassificationIterator(pipe, reader_name="reader")


def test_derived_iterators(files):
    class Flat(DALIClassificationIterator):
        def __next__(self):
            return super().__next__()[0]

    it = Flat(file_pipeline(files), reader_name="reader", auto_reset=True)
    assert [step["label"].ravel().tolist() for step in it] == [[0, 1], [2, 3], [4, 5], [6, 0]]


def test_values_can_be_collated(files):
    it = DALIClassificationIterator(file_pipeline(files), reader_name="reader")
    assert default_collate([step[0]["label"] for step in it]).shape == (4, 2, 1)


def test_dynamic_shape_is_accepted(files):
    it = DALIClassificationIterator(file_pipeline(files), reader_name="reader", dynamic_shape=True)
    assert len(list(it)) == 4


def test_every_epoch_begins_with_data(tmp_path):
    # DALI opens the second epoch with what it padded the first one with: 1 1, 4 4, 6 6, 9 9.
    path = tmp_path / "x"
    path.write_bytes(b"x")
    pipelines = []
    for shard in range(4):
        pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
        with pipe:
            _, label = fn.readers.file(
                files=[str(path)] * 10,
                name="reader",
                num_shards=4,
                shard_id=shard,
                pad_last_batch=True,
            )
            pipe.set_outputs(label)
        pipelines.append(pipe)
    it = DALIGenericIterator(
        pipelines, ["x"], reader_name="reader", last_batch_policy=LastBatchPolicy.DROP
    )
    for expected in ([[0, 1], [2, 3], [5, 6], [7, 8]], [[2, 3], [5, 6], [7, 8], [0, 1]]):
        assert [[d["x"].ravel().tolist() for d in step] for step in it] == [expected]


def test_wrappers_of_training_loops_override_the_step(files):
    class Wrapper(DALIClassificationIterator):
        def __next__(self):
            return super().__next__()[0]["label"].ravel().tolist()

        next = __next__

    it = Wrapper(file_pipeline(files), reader_name="reader", last_batch_policy=PARTIAL)
    assert [next(it), it.next()] == [[0, 1], [2, 3]]
    assert [len(step) for step in it] == [2, 1]
    assert [len(step) for step in it] == [2, 2, 2, 1]


@pytest.mark.parametrize("tag", ["dense", "sparse_list", "sparse_coo"])
def test_outputs_never_share_memory(tag):
    data = np.arange(1, 25, dtype=np.float32).reshape(2, 3, 4)
    pipe = Pipeline(2, 2, None)
    with pipe:
        x = fn.flip(fn.external_source(source=lambda: data[..., None], layout="HWC"))
        pipe.set_outputs(x, fn.reshape(x, shape=[3, 4]), x, fn.reshape(x, shape=[-1]))
    names = ["x", "image", "again", "flat"]
    it = DALIRaggedIterator(pipe, names, output_types=[tag, "dense", tag, "dense"])
    for _ in range(2):
        (outputs,) = next(it)
        expected = outputs["image"].clone()
        parts = [p for o in outputs.values() for p in (o if isinstance(o, list) else [o])]
        for part in parts:
            (part._values() if part.is_sparse else part).mul_(2)
        assert torch.equal(outputs["image"], 2 * expected)
        assert torch.equal(outputs["flat"].reshape(2, 3, 4), 2 * expected)
        for name in ("x", "again"):
            output = outputs[name]
            if isinstance(output, list):
                output = torch.stack(output)
            dense = output.to_dense() if output.is_sparse else output
            assert torch.equal(dense.reshape(2, 3, 4), 2 * expected)


def test_a_branch_that_no_sample_took_has_memory_of_its_own():
    data = np.full((2, 3, 4, 1), 7, np.uint8)

    def graph():
        x = fn.external_source(source=lambda: data, layout="HWC")
        y = x
        if fn.external_source(source=lambda: np.zeros(2, bool)):
            y = fn.gaussian_blur(x, sigma=1.0)
        return x, y

    pipe = pipeline_def(graph, enable_conditionals=True)(batch_size=2, num_threads=2)
    (outputs,) = next(DALIGenericIterator(pipe, ["x", "y"]))
    outputs["y"].add_(1)
    assert outputs["x"].unique().tolist() == [7]
