"""Files that cannot be read or decoded: errors that say everything, skipping, replacing."""

from __future__ import annotations

import itertools
from collections import Counter
from pathlib import Path

import numpy as np
import pytest

from headrace import Pipeline, errors, fn, types
from headrace.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
from tests.support import encoded_images
from tests.support.images import encoded

FILES = 23
HERE = Path(__file__)


def content(kind: str) -> bytes:
    whole = encoded(30, 40, seed=7).tobytes()
    return {
        "truncated": whole[: len(whole) // 2],
        "header only": whole[:160],
        "garbage": bytes(np.random.default_rng(0).integers(0, 256, 700, np.uint8)),
        "empty": b"",
        "text": b"No image, but a letter.\n" * 9,
        "icon": encoded_images.unsupported()["ico"],
    }[kind]


KINDS = {  # what the error says, and which operator
    "truncated": ("ends early", "decoders"),
    "header only": ("cut off or damaged", "decoders"),
    "garbage": ("no known image format", "decoders"),
    "empty": ("is empty", "readers.file"),
    "text": ("no known image format", "decoders"),
    "icon": ("a Windows icon. Taken are JPEG, PNG", "decoders"),
    "missing": ("does not exist", "readers.file"),
    "vanished": ("does not exist", "readers.file"),
    "dangling link": ("symbolic link", "readers.file"),
    "directory": ("is a directory", "readers.file"),
}


def decode(jpegs):
    return fn.resize(fn.decoders.image(jpegs), size=[8, 8])


def train(jpegs):
    images = fn.decoders.image_random_crop(jpegs)
    images = fn.resize(images, size=[8, 8])
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, output_layout="CHW", mirror=1)


def crop(jpegs):
    return fn.crop(fn.decoders.image(jpegs), crop=(12, 12), dtype=types.FLOAT)


GRAPHS = {"decode": decode, "train": train, "crop": crop}


@pytest.fixture(scope="module")
def good_files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("good")
    for k in range(FILES):
        (folder / f"{k:02}.jpg").write_bytes(encoded(30, 40, seed=k).tobytes())
    return [str(folder / f"{k:02}.jpg") for k in range(FILES)]


@pytest.fixture
def spoil(good_files, tmp_path):
    """Function of ``{number: kind}`` that returns the files, some of them of these kinds."""

    def spoiled(kinds: dict[int, str]) -> list[str]:
        files = list(good_files)
        for number, kind in kinds.items():
            path = tmp_path / f"bad{number:02}.jpg"
            files[number] = str(path)
            if kind == "dangling link":
                path.symlink_to(tmp_path / "nowhere")
            elif kind == "directory":
                path.mkdir()
            elif kind == "vanished":
                path.write_bytes(Path(good_files[number]).read_bytes())
            elif kind != "missing":
                path.write_bytes(content(kind))
        return files

    return spoiled


def make(files, graph=decode, batch_size=4, threads=2, depth=2, policy="raise", **reader):
    pipe = Pipeline(
        batch_size, threads, None, seed=5, prefetch_queue_depth=depth, on_bad_sample=policy
    )
    with pipe:
        jpegs, labels = fn.readers.file(files=files, name="reader", **reader)
        pipe.set_outputs(graph(jpegs), labels)
    pipe.build()
    for name in files:  # between listing and reading
        path = Path(name)
        if path.name.startswith("bad") and path.is_file() and content_is_good(path):
            path.unlink()
    return pipe


def content_is_good(path: Path) -> bool:
    data = path.read_bytes()
    return data[-2:] == b"\xff\xd9"


def line_of(text: str) -> int:
    """Number of the first line of this file with `text` in it."""
    lines = HERE.read_text().splitlines()
    return next(number for number, line in enumerate(lines, 1) if text in line)


DECODER_LINES = {
    "decode": line_of("fn.resize(fn.decoders.image(jpegs)"),
    "train": line_of("images = fn.decoders.image_random_crop(jpegs)"),
    "crop": line_of("fn.crop(fn.decoders.image(jpegs)"),
}


@pytest.mark.sweep
@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("graph", GRAPHS)
@pytest.mark.parametrize("kind", KINDS)
def test_the_error_says_everything_and_nothing_else_is_lost(kind, graph, fuse, spoil):
    files = spoil({6: kind})
    pipe = make(files, GRAPHS[graph])
    labels = [pipe.run()[1].as_array().ravel().tolist()]
    with pytest.raises(errors.BadSampleError) as caught:
        pipe.run()
    labels += [pipe.run()[1].as_array().ravel().tolist() for _ in range(4)]
    assert [k for batch in labels for k in batch][:19] == [k for k in range(23) if k // 4 != 1]

    reason, operator = KINDS[kind]
    message = str(caught.value)
    assert reason in message
    assert f"fn.{operator}" in message
    assert "at sample 2 of the batch" in message
    assert files[6] in message
    if operator == "decoders":
        line, function = DECODER_LINES[graph], graph
    else:
        line, function = line_of("fn.readers.file(files=files"), "make"
    assert f"created at {HERE}:{line} in {function}" in message
    assert caught.value.where.sample == 2
    assert caught.value.where.source == files[6]


@pytest.mark.parametrize("kind", ["truncated", "missing"])
def test_an_iterator_goes_on_behind_an_error(kind, spoil):
    loader = DALIGenericIterator(
        make(spoil({6: kind})),
        ["image", "label"],
        reader_name="reader",
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )
    shown, failures = [], 0
    for _ in range(len(loader)):
        try:
            shown += next(loader)[0]["label"].flatten().tolist()
        except errors.BadSampleError:
            failures += 1
    assert shown == [k for k in range(23) if k // 4 != 1]
    assert failures == 1
    with pytest.raises(StopIteration):
        next(loader)


SOME_BAD = {
    "one": {3: "truncated"},
    "first and last": {0: "missing", 22: "garbage"},
    "several": {5: "truncated", 6: "empty", 7: "text", 8: "icon", 21: "vanished"},
    "a whole batch and more": dict.fromkeys(range(3, 12), "garbage"),
}
ORDERS = {
    "in order": {},
    "shuffled": {"random_shuffle": True, "initial_fill": 7},
    "shuffled anew": {"shuffle_after_epoch": True},
}


def epochs(pipelines, policy, count):
    """Labels of each epoch: of each batch, of each pipeline."""
    loader = DALIGenericIterator(
        pipelines, ["image", "label"], reader_name="reader", last_batch_policy=policy
    )
    found = []
    for _ in range(count):
        promised, steps = len(loader), list(loader)
        assert len(steps) <= promised
        found.append([[part["label"].flatten().tolist() for part in step] for step in steps])
    return found


def shown(epoch):
    return Counter(k for step in epoch for part in step for k in part)


def check_each_good_file_once(found, good, policy, padded, shards):
    counts = [shown(epoch) for epoch in found]
    if policy is LastBatchPolicy.PARTIAL:
        # Without padding, what a batch has of the next epoch is cut off and lost, as in DALI.
        for count in counts if padded else counts[:1]:
            assert set(count) == set(good)
            # A shard whose samples are all shown goes on with others, one in each batch.
            assert shards > 1 or count == Counter(good)
        assert all(part for epoch in found for step in epoch for part in step)
    elif policy is LastBatchPolicy.FILL:
        for count in counts if padded else counts[:1]:
            assert set(count) == set(good)
        if not padded and shards == 1:  # epochs follow each other without a gap
            total = Counter(dict.fromkeys(good, 0))
            for step in itertools.chain.from_iterable(found):
                total.update(step[0])
                assert max(total.values()) - min(total.values()) <= 1
    elif not padded and shards == 1:
        (count,) = counts[:1]
        assert set(count.values()) == {1}
        assert sum(count.values()) == len(good) // 4 * 4


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("padded", [False, True], ids=["gapless", "padded"])
@pytest.mark.parametrize("policy", LastBatchPolicy, ids=lambda policy: policy.name)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("bad", SOME_BAD)
def test_skip_shows_each_good_file_once(bad, order, policy, padded, spoil):
    files = spoil(SOME_BAD[bad])
    good = sorted(set(range(FILES)) - set(SOME_BAD[bad]))
    for shards in (1, 3):
        results = []
        for threads, depth in ((1, 1), (3, 3)):
            pipelines = [
                make(
                    files,
                    threads=threads,
                    depth=depth,
                    policy="skip",
                    shard_id=k,
                    num_shards=shards,
                    pad_last_batch=padded,
                    **ORDERS[order],
                )
                for k in range(shards)
            ]
            if bad == "a whole batch and more" and shards == 3 and policy is LastBatchPolicy.DROP:
                continue  # no shard has a batch
            results.append(epochs(pipelines, policy, 3))
            reports = [report for pipe in pipelines for report in pipe.bad_samples]
            assert {report.source for report in reports} == {files[k] for k in SOME_BAD[bad]}
            assert {report.action for report in reports} == {"skip"}
            for report in reports:
                kind = SOME_BAD[bad][files.index(report.source)]
                reason, operator = KINDS[kind]
                assert reason in report.reason
                assert operator in report.operator
        for found in results:
            assert found == results[0]  # whatever the threads and the depth
            check_each_good_file_once(found, good, policy, padded, shards)


@pytest.mark.parametrize("threads", [1, 3])
@pytest.mark.parametrize("graph", GRAPHS)
def test_skipped_samples_leave_the_others_as_they_are(graph, threads, good_files, spoil):
    clean = make(good_files, GRAPHS[graph], batch_size=20).run()[0]
    kinds = {3: "truncated", 4: "empty", 15: "icon"}
    pipe = make(spoil(kinds), GRAPHS[graph], batch_size=20, threads=threads, policy="skip")
    images, labels = pipe.run()
    assert [labels.at(k).item() for k in kinds] == [20, 21, 22]
    for k in set(range(20)) - set(kinds):  # random numbers included
        np.testing.assert_array_equal(images.at(k), clean.at(k))


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("policy", LastBatchPolicy, ids=lambda policy: policy.name)
@pytest.mark.parametrize("order", ORDERS)
@pytest.mark.parametrize("shards", [1, 3])
def test_replace_keeps_the_number_of_samples(shards, order, policy, good_files, spoil):
    kinds = SOME_BAD["several"]
    files = spoil(kinds)
    good = set(range(FILES)) - set(kinds)
    clean = make(good_files, batch_size=FILES).run()[0]
    results = []
    for threads, depth in ((1, 1), (3, 3)):
        pipelines = [
            make(
                files,
                batch_size=6,
                threads=threads,
                depth=depth,
                policy="replace",
                shard_id=k,
                num_shards=shards,
                pad_last_batch=True,
                **ORDERS[order],
            )
            for k in range(shards)
        ]
        loader = DALIGenericIterator(
            pipelines, ["image", "label"], reader_name="reader", last_batch_policy=policy
        )
        found = []
        for _ in range(3):
            steps = list(loader)
            for part in itertools.chain.from_iterable(steps):
                for image, label in zip(part["image"], part["label"], strict=True):
                    np.testing.assert_array_equal(image.numpy(), clean.at(int(label)))
            found.append([[p["label"].flatten().tolist() for p in step] for step in steps])
        results.append(found)
        for epoch in found:
            count = shown(epoch)
            assert set(count) <= good
            if policy is LastBatchPolicy.PARTIAL:
                assert set(count) == good
                assert sum(count.values()) == FILES
        reports = [report for pipe in pipelines for report in pipe.bad_samples]
        assert {report.source for report in reports} == {files[k] for k in kinds}
        assert {report.action for report in reports} == {"replace"}
    assert results[0] == results[1]


def test_replace_where_a_whole_batch_is_bad(spoil):
    pipe = make(spoil(dict.fromkeys(range(3, 8), "text")), policy="replace")
    labels = [pipe.run()[1].as_array().ravel().tolist() for _ in range(3)]
    assert labels == [[0, 1, 2, 2], [2, 2, 2, 2], [8, 9, 10, 11]]


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_a_data_set_without_a_good_file(policy, spoil):
    pipe = make(spoil(dict.fromkeys(range(FILES), "garbage")), policy=policy)
    for _ in range(2):
        with pytest.raises(errors.HeadraceError) as caught:
            pipe.run()
        assert "no known image format" in str(caught.value.__cause__)


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        ({"file_root": "{tmp}/empty"}, "No files found in the 0 sub-directories of `file_root`"),
        ({"file_root": "{tmp}/missing"}, "`file_root`=.*cannot be listed: No such file"),
        ({"file_root": "{tmp}/file"}, "`file_root`=.*cannot be listed: Not a directory"),
        ({"file_root": "{tmp}/flat"}, "one for each class"),
        ({"file_list": "{tmp}/missing.txt"}, "missing.txt.* does not exist"),
        ({"files": []}, "`files` is an empty list"),
        ({"files": ["a", "b"], "labels": [1]}, "`labels` has 1 values for the 2 `files`"),
        ({}, "give `file_root`, `file_list` or `files`"),
    ],
    ids=["empty", "missing", "file", "no classes", "no list", "no files", "labels", "nothing"],
)
def test_folders(arguments, message, tmp_path):
    (tmp_path / "empty").mkdir()
    (tmp_path / "flat").mkdir()
    (tmp_path / "flat" / "image.jpg").write_bytes(encoded(8, 8).tobytes())
    (tmp_path / "file").write_text("")
    arguments = {
        k: v.format(tmp=tmp_path) if isinstance(v, str) else v for k, v in arguments.items()
    }
    pipe = Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(*fn.readers.file(**arguments))
    for _ in range(2):
        with pytest.raises(ValueError, match=message) as caught:
            pipe.build()
        line = line_of("pipe.set_outputs(*fn.readers.file(**arguments))")
        assert f"in operator `fn.readers.file`, created at {HERE}:{line}" in str(caught.value)
