"""The examples, each run as a user runs it, on a small data set."""

from __future__ import annotations

import ast
import difflib
import re

import cv2
import pytest

from examples.demo.photographs import write_dataset
from tests.e2e.support import REPOSITORY, run_python

pytest.importorskip("skimage")
pytest.importorskip("sklearn")
pytest.importorskip("rich")


def test_demo(tmp_path):
    folder = tmp_path / "data"
    options = ["--folder", str(folder), "--images", "64", "--epochs", "3", "--size", "32"]
    shown = run_python("-m", "examples.demo", *options).stdout
    assert shown.startswith("Setting up")
    assert re.search(r"cutting photographs .*76/76", shown)
    assert re.search(r"training .*6/6", shown)
    assert re.search(r"epoch 1/3 +loss \d\.\d+ +[\d,]+ samples/s +validation \d+\.\d%", shown)
    assert re.search(r"The pipeline alone, without the network: [\d,]+ samples/s", shown)
    reached = [float(percent) for percent in re.findall(r"validation +(\d+\.\d)%", shown)]
    assert len(reached) == 3
    assert f"Validation accuracy: {max(reached)}%" in shown
    sheet = cv2.imread(str(folder / "contact_sheet.png"))
    rows, columns, cell = 32 // 8, 8, 32
    assert sheet.shape[0] > rows * cell
    assert sheet.shape[1] > columns * cell
    assert sheet.std() > 20  # there is something to see
    assert sum(1 for _ in folder.glob("train/*/*.jpg")) == 64


@pytest.fixture(scope="module")
def photographs(tmp_path_factory):
    return ["--folder", str(tmp_path_factory.mktemp("photographs")), "--images", "64"]


@pytest.mark.parametrize(
    ("program", "options", "title"),
    [
        pytest.param("before", [], "before", marks=pytest.mark.nightly),
        ("after", [], "after (reader)"),
        ("after", ["--source", "external"], "after (external)"),
    ],
)
def test_pytorch(program, options, title, photographs):
    result = run_python("-m", f"examples.pytorch.{program}", *photographs, *options)
    lines = result.stdout.splitlines()
    assert [line.partition(" images, ")[0] for line in lines] == [
        f"{title}, epoch 0: 64",
        f"{title}, epoch 1: 64",
    ]


def test_video(tmp_path):
    pytest.importorskip("av")
    folder = ["--folder", str(tmp_path / "clips")]
    shown = run_python("-m", "examples.video.clips", *folder, "--each", "4").stdout
    assert shown.startswith("Wrote 20 videos")
    shown = run_python("-m", "examples.video.train", *folder, "--epochs", "2").stdout
    assert len(re.findall(r"epoch \d/2  loss \d\.\d+  validation \d+\.\d%", shown)) == 2


@pytest.mark.parametrize(
    "programs",
    [("after",), pytest.param(("before", "after"), marks=pytest.mark.nightly)],
    ids="-".join,
)
def test_torchvision(programs, tmp_path):
    """Two imports, and the loader's line: the rest of the program is as it was."""
    sources = [REPOSITORY / f"examples/torchvision/{name}.py" for name in ("before", "after")]
    lines = [ast.unparse(ast.parse(path.read_text()).body[1:]).splitlines() for path in sources]
    changed = [
        line.strip("+- ")
        for line in difflib.unified_diff(*lines, n=0, lineterm="")
        if line[:3] not in ("---", "+++") and line[:2] != "@@"
    ]
    assert changed == [
        "from torch.utils.data import DataLoader",
        "from torchvision.transforms import v2",
        "from headrace.experimental.torchvision import to_loader, v2",
        "return DataLoader(ImageFolder(root, transform), **more)",
        "return to_loader(ImageFolder(root), transform, **more)",
    ]
    readme = (REPOSITORY / "examples/torchvision/README.md").read_text()
    assert all(line in readme for line in changed)
    reached = []
    for name in programs:
        start = (
            "import runpy\nfrom tests.support.torchvision_beside_cpu import import_torchvision\n"
            "import_torchvision()\n"
            f"runpy.run_module('examples.torchvision.{name}', run_name='__main__')"
        )
        options = ["--images", "128", "--epochs", "3", "--size", "32", "--workers", "1"]
        shown = run_python("-c", start, "--folder", str(tmp_path), *options).stdout
        pattern = r"epoch \d: loss \d\.\d+, \d+\.\d+ s, .* for images, validation (\d+\.\d)%"
        found = [float(percent) for percent in re.findall(pattern, shown)]
        assert len(found) == 3
        reached.append(max(found))
    assert min(reached) > 25, "of eight classes"
    assert max(reached) - min(reached) < 40, "thirty-two images are few"


class TestJax:
    """On eight devices, which the tests' own settings ask for."""

    @pytest.fixture(autouse=True)
    def _jax(self):
        pytest.importorskip("flax")
        pytest.importorskip("matplotlib")

    def test_getting_started(self, tmp_path):
        plots = tmp_path / "plots"
        options = ["--folder", str(tmp_path / "data"), "--plots", str(plots), "--epochs", "1"]
        shown = run_python("-m", "examples.jax.getting_started", *options).stdout
        assert "images: isinstance(images, jax.Array)=True, (1, 256, 256, 3), uint8" in shown
        assert "images: (8, 256, 256, 3), labels: (8, 1)" in shown
        assert "len(iterator) = 21, steps: 21" in shown
        orders = re.findall(r"seed \d: labels (\[.*\])", shown)
        assert orders[0] == orders[1] != orders[2]
        assert "global images: (8, 256, 256, 3), NamedSharding(mesh=Mesh('batch': 8" in shown
        for k in range(8):
            assert f"cpu:{k}: slice({k}, {k + 1}, None) (1, 256, 256, 3)" in shown
            assert f"CPU {k}" in shown
        assert re.search(r"num_threads=4: [\d,]+ images/s", shown)
        for name in ("quick_start", "batch", "rotated"):
            assert cv2.imread(str(plots / f"{name}.png")).std() > 20

    def test_flax_training(self, tmp_path):
        options = ["--folder", str(tmp_path / "data"), "--plots", str(tmp_path), "--images", "64"]
        options += ["--epochs", "2", "--size", "32", "--batch-size", "16"]
        shown = run_python("-m", "examples.jax.flax_training", *options).stdout
        one, every = re.findall(
            r"(\d) x cpu: loss (\d\.\d+) -> (\d\.\d+), .* validation (.*)", shown
        )
        assert (one[0], every[0]) == ("1", "8")
        assert one[1] == every[1]
        assert "/10 =" in one[3]
        (apart,) = re.findall(r"losses of 8 steps: (\S+)", shown)
        assert float(apart) < 1e-4
        assert cv2.imread(str(tmp_path / "losses.png")).std() > 5


def test_a_folder_with_other_images_is_refused(tmp_path):
    write_dataset(tmp_path, 3)
    first = {path: path.read_bytes() for path in tmp_path.glob("*/*.jpg")}
    write_dataset(tmp_path, 5)  # an interrupted run is completed
    assert len(list(tmp_path.glob("*/*.jpg"))) == 5
    assert all(path.read_bytes() == data for path, data in first.items())
    with pytest.raises(FileExistsError, match="remove it, or choose another folder"):
        write_dataset(tmp_path, 4)


def test_audio_augmentation(tmp_path):
    folder = tmp_path / "speech"
    options = ["--folder", str(folder), "--clips", "32", "--seconds", "0.1", "--threads", "1", "2"]
    shown = run_python("-m", "examples.dynamic.audio_augmentation", *options).stdout
    assert "A batch of 8: f32, (128, 101)" in shown
    assert re.search(r"A mistake: .*nfilter", shown)
    assert "Seed 1 twice, bit for bit: True" in shown
    assert "Seed 2 is different: True" in shown
    assert "Two ranks: 16 + 16 clips" in shown
    assert len(re.findall(r"│ +[12] │ +[\d,]+ │ +[\d,]+ │", shown)) == 2
    picture = cv2.imread(str(folder / "log_mel.png"))
    assert picture.shape[0] > 128
    assert picture.std() > 20  # there is something to see
    assert sum(1 for _ in folder.glob("*/*.wav")) == 32
