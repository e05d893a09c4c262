"""The programs in the guide run as they stand there, one after the other on each page."""

from __future__ import annotations

import re
import socket
import types
import warnings
from pathlib import Path

import cv2
import numpy as np
import pytest
import torch
from PIL import Image

from headrace import Pipeline
from headrace.executor.loader import Loader
from headrace.plugin.triton import invoke_autoserialize
from tests.e2e.support import REPOSITORY, one_file_a_class
from tests.support.torchvision_beside_cpu import import_torchvision


def programs(page):
    text = (REPOSITORY / "docs" / page).read_text()
    return re.findall(r"```python\n(.*?)```", text, re.DOTALL)


@pytest.fixture
def run_page(tmp_path, monkeypatch):
    """Runs the programs of a page in a folder with `photos`; returns the names they define."""
    one_file_a_class(tmp_path / "photos", 20)
    monkeypatch.chdir(tmp_path)

    def run(page, *numbers):
        names = {"__name__": page}
        found = programs(page)
        for number in numbers or range(len(found)):
            exec(compile(found[number], f"docs/{page}", "exec"), names)
        return names

    return run


def headings(path):
    text = re.sub(r"```.*?```", "", path.read_text(), flags=re.DOTALL)
    titles = re.findall(r"^#+ (.*)$", text, re.MULTILINE)
    return {re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-") for title in titles}


def test_links_lead_somewhere():
    broken = []
    for page in (REPOSITORY / "README.md", *(REPOSITORY / "docs").rglob("*.md")):
        text = re.sub(r"```.*?```", "", page.read_text(), flags=re.DOTALL)
        for link in re.findall(r"\]\(([^)\s]+)\)", text):
            name, _, heading = link.partition("#")
            target = page.parent / name if name else page
            if link.startswith("http"):
                continue
            if not target.exists() or (
                heading and target.suffix == ".md" and heading not in headings(target)
            ):
                broken.append(f"{page.relative_to(REPOSITORY)}: {link}")
    assert not broken


def test_columns(run_page):
    names = run_page("columns.md")
    assert names["images"].shape() == [(8, 8, 3)] * 5
    assert names["labels"].as_array().tolist() == [0, 1, 2, 3, 4]


def test_sample_order(run_page):
    names = run_page("sample-order.md")
    assert names["subset"].run()[1].as_array().ravel().tolist() == [7, 3, 3, 19]
    assert sorted(names["classes"]) == sorted(path.name for path in Path("photos").iterdir())
    assert {len(name) for name in names["classes"]} == set(names["classes"].values())


def test_mixing(run_page):
    names = run_page("mixing.md")
    assert names["drawn"] == [21, 7]


def test_side_data(run_page):
    names = run_page("side-data.md")
    assert names["names"].tolist() == [f"sample {k}" for k in range(4)]
    numbers = [int(text.split()[1]) for text in names["captions"].tolist()]
    assert names["labels"].as_array().tolist() == [number % 3 for number in numbers]


def test_profiling(run_page, tmp_path, capsys):
    names = run_page("profiling.md", 0)
    assert "fn.resize" in (tmp_path / "profile.html").read_text()
    assert (tmp_path / "profile.trace.json").exists()
    assert len(capsys.readouterr().out.splitlines()) == len(names["profile"].advice())
    names = run_page("profiling.md", 0, 1)
    assert "No operator is slow" in capsys.readouterr().out
    pytest.importorskip("opentelemetry.sdk")
    names = run_page("profiling.md", 0, 1, 2)
    assert names["provider"].force_flush()
    names["provider"].shutdown()


def test_looking(run_page, tmp_path, capsys):
    names = run_page("looking.md")
    assert cv2.imread(str(tmp_path / "batch.png")).std() > 20
    assert names["pixels"].shape[2] == 3
    printed = capsys.readouterr().out
    (shown,) = re.findall(
        r"```text\n(.*?)```", (REPOSITORY / "docs/looking.md").read_text(), re.DOTALL
    )

    def words(text):
        return [line.split()[:3] for line in text.splitlines()[1:]]

    assert words(printed) == words(shown)
    assert printed.splitlines()[0] == shown.splitlines()[0]


def test_conditionals(run_page, tmp_path):
    # Functions are converted from their source, so they need a file.
    path = tmp_path / "conditionals.py"
    path.write_text("\n".join(programs("conditionals.md")))
    names = {"__name__": "conditionals"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    angles = np.asarray(names["angle"].as_array())
    assert 0 < np.count_nonzero(angles) < len(angles), "both branches are taken"


def test_checkpointing(run_page):
    names = run_page("checkpointing.md")
    assert sum(1 for _ in names["loader"]) == 1


def test_running(run_page):
    names = run_page("running.md")
    taken = [
        int(np.asarray(names[k][0].as_array())[0, 0]) for k in ("first", "second", "third", "last")
    ]
    assert taken == [0, 1, 2, 3]


def test_bad_samples(run_page, capsys):
    run_page("bad-samples.md")
    printed = capsys.readouterr().out.splitlines()
    text = (REPOSITORY / "docs/bad-samples.md").read_text()
    error, report = re.findall(r"```text\n(.*?)```", text, re.DOTALL)
    shown = [*error.splitlines(), *report.splitlines()]
    assert [line.partition(" created at ")[0] for line in printed] == [
        line.partition(" created at ")[0] for line in shown
    ]


@pytest.mark.usefixtures("roomy_caches")
def test_caching(run_page, monkeypatch, tmp_path):
    monkeypatch.setenv("HEADRACE_RAM_CACHE", str(tmp_path))
    names = run_page("caching.md")
    with pytest.MonkeyPatch.context() as patch:  # all is there: nothing is read any more
        patch.setattr(Loader, "_load", None)
        wanted = names["pipe"].run()
        assert wanted[0].shape() == [(224, 224, 3)] * 8


def test_batch_mixes(run_page):
    names = run_page("batch-mixes.md")
    assert names["targets"].shape == (8, 20)
    np.testing.assert_allclose(names["targets"].sum(1), 1, rtol=1e-6)
    assert names["masks"].shape() == [(320, 320, 1)] * 4
    assert [s[0] for s in names["labels"].shape()] == [s[0] for s in names["boxes"].shape()]


def test_buckets(run_page, capsys):
    names = run_page("buckets.md")
    said = r"\d+ batches, of which \d+% are padding\n\(8, 256\) 0\.\d% padding\n"
    assert re.fullmatch(said, capsys.readouterr().out)
    assert names["seconds"] <= 12.0
    assert names["meta"]["padding"] < 0.3


def test_remote(run_page):
    names = run_page("remote.md")
    assert names["images"].shape() == [(224, 224, 3)] * 8
    names["store"].rm("/photos", recursive=True)


def test_memory(run_page):
    names = run_page("memory.md")
    assert names["sizes"][0] > 60_000, "what the samples themselves take"
    pipe = names["pipe"]
    assert pipe._engine.reserves or pipe._executor.processes is not None, "they have one file"


def test_debug_mode(run_page, capsys):
    names = run_page("debug-mode.md")
    printed = capsys.readouterr().out
    assert printed.count("<no data yet>") == 2
    assert re.search(r"^mean \d+\.\d+$", printed, re.MULTILINE)
    assert "[0] [" in printed
    assert names["images"].as_array().shape == (4, 8, 8, 3)


def test_serialization(run_page, tmp_path):
    names = run_page("serialization.md")
    invoke_autoserialize(types.SimpleNamespace(__file__="m", **names), tmp_path / "model")
    for pipe in (names["pipe"], Pipeline.deserialize(filename=tmp_path / "model")):
        name = next(node.name for node in pipe._define() if node.input_queue is not None)
        photos = [np.fromfile(p, np.uint8) for p in sorted(Path("photos").rglob("*.jpg"))[:2]]
        pipe.feed_input(name, photos)
        assert pipe.run()[0].shape() == [(224, 224, 3)] * 2


def test_determinism(run_page):
    names = run_page("determinism.md")
    assert not np.array_equal(names["a"].at(0), names["a"].at(1)), "there is something to compare"


def test_auto_aug(run_page):
    names = run_page("auto-aug.md")
    for name in ("training", "own_policy"):
        images, labels = names[name](device_id=None, batch_size=4).run()
        assert len(images) == len(labels) == 4


def test_pytorch(run_page, monkeypatch):
    with socket.socket() as free:
        free.bind(("localhost", 0))
        port = free.getsockname()[1]
    settings = {"RANK": 0, "WORLD_SIZE": 1, "MASTER_ADDR": "localhost", "MASTER_PORT": port}
    for name, value in settings.items():
        monkeypatch.setenv(name, str(value))
    names = run_page("pytorch.md", 0, 2)
    assert len(names["loader"]) == 3
    saved = torch.load("rank0.pt", weights_only=True)
    names["loader"].load_state_dict(saved["loader"])


def test_pytorch_devices(run_page):
    names = run_page("pytorch.md", 0, 1)
    assert names["batch"]["image"].shape == (4, 3, 64, 64)


def test_pytorch_loaders(run_page, tmp_path, capsys):
    (tmp_path / "photos/a").mkdir(parents=True, exist_ok=True)
    photo = next((tmp_path / "photos").rglob("*.jpg"))
    (tmp_path / "photos/a/0.jpg").write_bytes(photo.read_bytes())
    run_page("pytorch.md", 5, 6)
    printed = capsys.readouterr().out
    assert "torch.Size([4, 64, 64, 3]) [16, 17, 18, 19]" in printed
    assert "Total batches processed: 10" in printed


@pytest.mark.parametrize(
    ("library", "program", "steps"),
    [("lightning", 3, [0, 1, 2]), ("accelerate", 4, [0, 1, 2, 1, 2])],
)
def test_trainers(library, program, steps, run_page, monkeypatch):
    """A trainer that goes on in the middle of an epoch sees the batches that were left."""
    pytest.importorskip(library)
    from headrace.plugin.pytorch import DALIGenericIterator

    seen = []
    assemble = DALIGenericIterator._assemble

    def noted(self, batches):
        found = assemble(self, batches)
        seen.append(found[0]["label"].ravel().tolist())
        return found

    monkeypatch.setattr(DALIGenericIterator, "_assemble", noted)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # theirs
        names = run_page("pytorch.md", 0, program)
    del names
    batches = seen[-len(steps) :]
    epoch = batches[:2] + batches[-1:]
    assert batches == [epoch[k] for k in steps]
    assert sorted(k for batch in epoch for k in batch) == list(range(20))


def test_from_torchvision(run_page):
    import_torchvision()
    names = run_page("from-torchvision.md")
    text = (REPOSITORY / "docs/from-torchvision.md").read_text()
    printed = re.search(r"```python printed\n(.*?)```", text, re.DOTALL)[1]
    options = {"batch_size": 8, "num_threads": 2, "device_id": None}
    definition = names["transform"].to_pipeline("photos", show=False, **options)
    assert printed == definition.text
    assert definition().run()[0].as_tensor().shape() == [8, 3, 224, 224]
    assert names["images"].as_tensor().shape() == [8, 3, 224, 224]
    paths = sorted(Path("photos").rglob("*.jpg"))
    for number in range(8):
        image = Image.open(paths[number])
        width, height = image.size
        scale = 256 / min(width, height)
        image = image.resize(
            (round(width * scale), round(height * scale)), Image.Resampling.BILINEAR
        )
        left, top = (image.width - 224) / 2, (image.height - 224) / 2
        box = (round(left), round(top), round(left) + 224, round(top) + 224)
        pixels = np.asarray(image.crop(box), np.float32)
        expected = (pixels - np.float32(names["MEAN"])) / np.float32(names["STD"])
        found = names["images"].at(number).transpose(1, 2, 0)
        assert np.abs(found - expected).mean() < 0.05, "levels of a byte are 0.017 apart"


def test_functions_in_python(run_page):
    run_page("python-functions.md")
