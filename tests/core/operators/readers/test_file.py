"""`readers.file` in pipelines."""

from __future__ import annotations

import warnings

import pytest

import headrace.experimental.dynamic as ndd
from headrace import errors, fn, samplers, types
from headrace.pipeline import Pipeline


@pytest.fixture
def files(tmp_path):
    found = []
    for k in range(10):
        path = tmp_path / "abc"[k % 3] / f"{k}.jpg"
        path.parent.mkdir(exist_ok=True)
        path.write_bytes(b"%d" % k * (k + 1))
        found.append(str(path))
    return found


def pipeline(batch_size=4, num_threads=2, options=None, **arguments):
    pipe = Pipeline(batch_size, num_threads, None, **(options or {}))
    with pipe:
        pipe.set_outputs(*fn.readers.file(name="reader", **arguments))
    return pipe


def labels(pipe, batches):
    return [pipe.run()[1].as_array().ravel().tolist() for _ in range(batches)]


def test_contents_and_labels(files):
    pipe = pipeline(files=files, labels=range(5, 15))
    data, label = pipe.run()
    assert [bytes(data.at(k)) for k in range(4)] == [b"0", b"11", b"222", b"3333"]
    assert (data.dtype, data.ndim(), data.layout()) == (types.UINT8, 1, "")
    assert (label.dtype, label.shape(), label.layout()) == (types.INT32, [(1,)] * 4, "")
    assert label.as_array().ravel().tolist() == [5, 6, 7, 8]
    assert data.source_info() == files[:4]


def test_classes_of_a_directory(files, tmp_path):
    pipe = pipeline(10, file_root=tmp_path)
    data, label = pipe.run()
    assert label.as_array().ravel().tolist() == [0] * 4 + [1] * 3 + [2] * 3
    assert data.source_info()[:3] == ["a/0.jpg", "a/3.jpg", "a/6.jpg"]
    assert bytes(data.at(1)) == b"3333"


def test_list_file(files, tmp_path):
    (tmp_path / "list.txt").write_text("b/1.jpg 7\nc/2.jpg 8\n")
    data, label = pipeline(2, file_list=str(tmp_path / "list.txt")).run()
    assert label.as_array().ravel().tolist() == [7, 8]
    assert data.source_info() == ["b/1.jpg", "c/2.jpg"]
    data, label = pipeline(
        2, file_list=str(tmp_path / "list.txt"), file_root=tmp_path / "a/.."
    ).run()
    assert bytes(data.at(1)) == b"222"


def test_two_readers_with_one_seed_stay_together(files):
    pipe = Pipeline(4, 2, None)
    with pipe:
        one = fn.readers.file(files=files, random_shuffle=True, seed=11)
        two = fn.readers.file(files=files[::-1], random_shuffle=True, seed=11)
        pipe.set_outputs(one[1], two[1])
    for _ in range(6):
        a, b = pipe.run()
        assert a.as_array().tolist() == b.as_array().tolist()


def test_order_does_not_depend_on_threads_and_prefetching(files):
    def order(**options):
        threads = options.pop("num_threads", 1)
        pipe = pipeline(3, threads, options, files=files, random_shuffle=True, seed=3)
        return labels(pipe, 9)

    expected = order()
    assert order(num_threads=4, prefetch_queue_depth=5) == expected
    assert order(prefetch_queue_depth=1) == expected


def test_order_follows_the_seed_of_the_pipeline(files):
    def order(seed):
        return labels(pipeline(5, options={"seed": seed}, files=files, random_shuffle=True), 4)

    assert order(1) == order(1)
    assert order(1) != order(2)


def test_meta(files):
    pipe = pipeline(files=files, num_shards=3, shard_id=1, pad_last_batch=True)
    assert pipe.reader_meta("reader") == {
        "epoch_size": 10,
        "epoch_size_padded": 12,
        "number_of_shards": 3,
        "shard_id": 1,
        "pad_last_batch": 1,
        "stick_to_shard": 0,
    }
    assert pipe.epoch_size("reader") == 12
    pipe = pipeline(files=files, shuffle_after_epoch=True)
    assert pipe.reader_meta("reader")["stick_to_shard"] == 1
    assert pipe.epoch_size() == {"reader": 10}


def test_missing_file_says_which(files, tmp_path):
    pipe = pipeline(files=[*files[:2], str(tmp_path / "gone.jpg"), files[3]])
    with pytest.raises(errors.BadSampleError, match=r"gone\.jpg' does not exist") as caught:
        pipe.run()
    message = str(caught.value)
    assert "readers.file" in message
    assert "sample 2" in message
    assert "test_file.py" in message


def test_empty_file(files, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    with pytest.raises(errors.BadSampleError, match="empty"):
        pipeline(1, files=[tmp_path / "empty"]).run()
    data, _ = pipeline(1, files=[tmp_path / "empty"], dont_use_mmap=True).run()
    assert data.shape() == [(0,)]


def test_bad_files_can_be_skipped(files, tmp_path):
    (tmp_path / "empty").write_bytes(b"")
    names = [*files[:2], str(tmp_path / "gone"), files[3], str(tmp_path / "empty"), *files[5:]]
    pipe = pipeline(4, options={"on_bad_sample": "skip"}, files=names, labels=range(10))
    assert sorted(sum(labels(pipe, 2), start=[])) == [0, 1, 3, 5, 6, 7, 8, 9]  # noqa: RUF017
    assert {bad.source for bad in pipe.bad_samples[:2]} == {names[2], names[4]}


def test_bad_last_sample_of_a_padded_epoch(files, tmp_path):
    names = [*files[:9], str(tmp_path / "gone")]
    options = {"on_bad_sample": "skip"}
    pipe = pipeline(4, options=options, files=names, pad_last_batch=True)
    epoch = labels(pipe, 3)
    assert epoch[:2] == [[0, 1, 2, 3], [4, 5, 6, 7]]
    assert epoch[2][0] == 8
    assert 9 not in epoch[2]
    assert labels(pipe, 1) == [[0, 1, 2, 3]]


def test_hints_change_nothing(files):
    expected = labels(pipeline(files=files), 3)
    hints = {
        "prefetch_queue_depth": 3,
        "read_ahead": True,
        "skip_cached_images": True,
        "lazy_init": True,
        "dont_use_mmap": True,
        "tensor_init_bytes": 1,
    }
    assert labels(pipeline(files=files, **hints), 3) == expected


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        ({}, "file_root"),
        ({"files": []}, "empty list"),
        ({"files": ["a"], "file_list": "b"}, "not both"),
        ({"files": ["a", "b"], "labels": [1]}, "labels"),
        ({"file_root": "x", "labels": [1]}, "without `files`"),
        ({"file_root": "/does/not/exist"}, "cannot be listed"),
        ({"file_list": "/does/not/exist"}, "does not exist"),
        ({"files": ["a"], "shard_id": -1}, "shard_id"),
        ({"files": ["a"], "num_shards": 2}, "requested number of shards: 2"),
        ({"files": ["a"], "random_shuffle": True, "initial_fill": 0}, "initial_fill"),
        ({"files": ["a"], "prefetch_queue_depth": 0}, "prefetch_queue_depth"),
        ({"files": ["a"], "random_shuffle": True, "shuffle_after_epoch": True}, "exclude"),
        ({"files": ["a"], "stick_to_shard": True, "shuffle_after_epoch": True}, "exclude"),
    ],
)
def test_wrong_arguments(arguments, words):
    pipe = pipeline(**arguments)
    with pytest.raises(errors.ArgumentValueError, match=words) as caught:
        pipe.build()
    assert isinstance(caught.value, RuntimeError)
    assert "readers.file" in str(caught.value)


def test_seed_without_effect(files):
    with pytest.warns(UserWarning, match="shuffle_after_epoch_seed") as told:
        pipeline(files=files, shuffle_after_epoch_seed=3).build()
    assert told[0].filename == __file__
    with warnings.catch_warnings():
        warnings.simplefilter("error")
        pipeline(files=files, shuffle_after_epoch=True, shuffle_after_epoch_seed=3).build()


def test_a_hundred_thousand_files(files):
    pipe = pipeline(16, files=files * 10_000, random_shuffle=True)
    assert pipe.epoch_size("reader") == 100_000
    assert len(set(labels(pipe, 1)[0])) == 16


def test_extensions(files, tmp_path):
    (tmp_path / "a" / "x.PNG").write_bytes(b"png")
    (tmp_path / "a" / "y.tar.gz").write_bytes(b"packed")
    for extensions, names in (
        (["png", ".tar.gz"], ["a/x.PNG", "a/y.tar.gz"]),
        ("gz", ["a/y.tar.gz"]),
    ):
        pipe = pipeline(1, file_root=tmp_path, extensions=extensions)
        assert [pipe.run()[0].source_info()[0] for _ in names] == names
    with pytest.raises(errors.ArgumentValueError, match="No files found"):
        pipeline(file_root=tmp_path, extensions="png", case_sensitive_filter=True).build()
    for wrong in ([], ["*.jpg"], [""], ["a/b"]):
        with pytest.raises(errors.ArgumentValueError, match="`extensions` is"):
            pipeline(file_root=tmp_path, extensions=wrong).build()
    with pytest.raises(errors.MisusedArgumentError, match="give one of them"):
        pipeline(file_root=tmp_path, extensions="jpg", file_filters="*.png").build()


def test_transforms_of_labels_and_names_of_classes(files, tmp_path):
    (tmp_path / "d").mkdir()
    transform = {"a": 7, "b": -1, "c": 7, "d": 0}
    for given in (transform, transform.__getitem__):
        pipe = pipeline(10, file_root=tmp_path, label_transform=given)
        assert labels(pipe, 1) == [[7] * 4 + [-1] * 3 + [7] * 3]
        assert pipe.reader_meta("reader").classes == transform
    pipe = pipeline(10, file_root=tmp_path)
    pipe.build()
    assert pipe.reader_meta("reader").classes == {"a": 0, "b": 1, "c": 2, "d": 3}
    pipe = pipeline(3, files=files[:3], labels=[2, 0, 2], label_transform=[5, 6, 8])
    assert labels(pipe, 1) == [[8, 5, 8]]
    assert pipe.reader_meta("reader").classes == {}
    reader = ndd.readers.File(file_root=tmp_path, label_transform=transform)
    assert reader.get_metadata().classes == transform
    # What a sampler balances are the labels as they come out.
    pipe = pipeline(
        10, file_root=tmp_path, label_transform=transform, sampler=samplers.Balanced(size=10)
    )
    assert sorted(labels(pipe, 1)[0]) == [-1] * 5 + [7] * 5


@pytest.mark.parametrize(
    ("transform", "error", "words"),
    [
        ({"a": 1}, errors.ArgumentValueError, "no label for the class 'b'"),
        (lambda name: name, errors.ArgumentTypeError, "makes 'a' of the class 'a'"),
        (lambda name: 1 << 31, errors.ArgumentValueError, "does not fit into 32 bits"),
    ],
)
def test_wrong_transforms_of_labels(files, tmp_path, transform, error, words):
    with pytest.raises(error, match=words):
        pipeline(file_root=tmp_path, label_transform=transform).build()
