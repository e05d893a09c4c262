"""Programs of the guide that want other data than photographs run as they stand there, too."""

from __future__ import annotations

import shutil

import numpy as np
import pytest

import headrace
from headrace import Pipeline, fn
from tests.e2e.support import one_file_a_class
from tests.e2e.test_documents import programs
from tests.support.speech import CLIPS, FOLDER


@pytest.fixture
def run(tmp_path, monkeypatch):
    """Run programs of a page one after the other; names are those that its text takes for granted.

    `changed` are texts for which a program that is for a GPU, or for the cloud, has others here.
    """
    monkeypatch.chdir(tmp_path)

    def run(page, *numbers, changed=(), **names):
        names["__name__"] = page
        found = programs(page)
        for number in numbers or range(len(found)):
            text = found[number]
            for old, new in changed:
                assert old in text
                text = text.replace(old, new)
            exec(compile(text, f"docs/{page}", "exec"), names)
        return names

    return run


@pytest.fixture
def photos(tmp_path):
    return one_file_a_class(tmp_path / "photos", 20)


def _speech(folder):
    for kind in ("a", "b"):
        (folder / kind).mkdir(parents=True)
        for name in CLIPS[:3]:
            shutil.copy(FOLDER / name, folder / kind / name)


def test_index(run, photos):
    names = run("index.md")
    assert names["images"].shape[1:] == (3, 224, 224)


def test_audio(run, tmp_path):
    _speech(tmp_path / "speech")
    features, labels = run("audio.md")["speech"](batch_size=6).run()
    assert features.shape() == [(80, 101)] * 6
    assert labels.as_array().ravel().tolist() == [0, 0, 0, 1, 1, 1]


def test_dynamic(run, tmp_path):
    _speech(tmp_path / "clips")
    seen = []
    run("dynamic.md", train_on=seen.append, rank=0, ranks=1)
    assert [tuple(features.shape) for features in seen] == [
        (8, 80, 101)
    ]  # the last batch is filled up
    assert len(list(tmp_path.glob("state-*.json"))) == 1


def test_colors(run, photos):
    photos.rename(photos.parent / "photographs")
    images, _ = run("colors.md")["training"](batch_size=4).run()
    assert images.shape() == [(3, 224, 224)] * 4


def test_gpu(run, photos):
    here = (("device_id=0", "device_id=None"), (', device="mixed"', ""), ("labels.gpu()", "labels"))
    images, _ = run("gpu.md", changed=here)["train"]("photos", batch_size=4).run()
    assert images.shape() == [(3, 224, 224)] * 4


def test_type_checking(run, photos):
    photos.rename(photos.parent / "photographs")
    images, _ = run("type-checking.md")["pipe"].run()
    assert {shape[:2] for shape in images.shape()} == {(256, 256)}


def test_workers(run):
    assert run("workers.md", pipeline_def=headrace.pipeline_def)["training"]


def test_video(run, tmp_path):
    pytest.importorskip("av")
    from tests.support.videos import write_video

    (tmp_path / "clips/a").mkdir(parents=True)
    write_video(tmp_path / "clips/a/0.mp4", frames=40)
    clips, _ = run("video.md")["clips"](batch_size=1).run()
    assert clips.shape() == [(16, 3, 224, 224)]


def test_external_source(run, tmp_path):
    (tmp_path / "data").mkdir()
    for number in range(130):
        np.save(tmp_path / f"data/{number:03}.npy", np.full(2, number, np.int32))
    names = run("external-source.md", 0)
    pipe = names["training"](py_num_workers=1)
    assert [int(pipe.run()[0].at(0)[0]) for _ in range(2)] == [0, 64]
    with pytest.raises(StopIteration):
        pipe.run()


def test_parts_of_an_iterable(run):
    names = run("external-source.md", 1, batches_of=range)
    assert list(names["Files"]([2, 3])) == [0, 0, 1, 1, 2]


def test_page_locked_source(run, monkeypatch):
    """The page's source, with memory as it is without a GPU."""

    class Simulation:
        def render(self, out):
            out[...] = 3

    monkeypatch.setenv("HEADRACE_GPU", "never")
    rest = {"simulation": Simulation(), "headrace": headrace, "fn": fn}
    with Pipeline(256, 1, None):
        names = run("external-source.md", 2, **rest)
    with pytest.warns(UserWarning, match="empty_pinned"):
        batch = names["source"]()
    assert (batch.shape, batch.dtype, float(batch.mean())) == ((256, 3, 224, 224), np.float32, 3.0)


def test_dataset_source(run):
    dataset = [(np.full((9, 9, 3), number, np.uint8), number) for number in range(130)]
    granted = {"dataset": dataset, "world_size": 1, "rank": 0}
    names = run("external-source.md", 3, pipeline_def=headrace.pipeline_def, fn=fn, **granted)
    images, labels = names["training"](py_num_workers=1).run()
    assert images.shape() == [(224, 224, 3)] * 64
    assert [int(images.at(k)[0, 0, 0]) for k in range(64)] == labels.as_array().ravel().tolist()


def test_squirrel(run, tmp_path):
    pytest.importorskip("squirrel")
    from squirrel.driver import MessagepackDriver

    samples = [{"image": np.full(3, k, np.uint8), "label": np.int64(k)} for k in range(8)]
    MessagepackDriver(str(tmp_path / "shards")).store.set(samples, key="0")
    granted = {
        "fn": fn,
        "MessagepackDriver": MessagepackDriver,
        "to_tuple": lambda sample: (sample["image"], sample["label"]),
    }
    for number in range(3):
        changed = (("s3://bucket/shards", "shards"),) if number == 0 else ()
        pipe = headrace.Pipeline(batch_size=8, num_threads=1, device_id=None)
        with pipe:
            names = run("squirrel.md", number, changed=changed, **granted)
            pipe.set_outputs(names["images"], names["labels"])
        images, labels = pipe.run()
        found = [int(images.at(k)[0]) for k in range(8)]
        assert found == labels.as_array().ravel().tolist()
        assert sorted(found) == list(range(8))
