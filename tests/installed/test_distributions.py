"""What users install: sdists and wheels of every package, in an environment of their own.

The core is installed with everything it declares and nothing else. The plugins join it without
their dependencies; PyTorch is lent by the environment that runs the tests, at the far end of the
path, so that nothing of Headrace can come from there.
"""

from __future__ import annotations

import email
import os
import subprocess
import sys
import sysconfig
import tarfile
import venv
import zipfile
from pathlib import Path

import pytest

import headrace._version

ROOT = Path(__file__).parents[2]
VERSION = headrace._version.__version__
DISTRIBUTIONS = {
    "core": "headrace",
    "torch-plugin": "headrace_torch",
    "jax-plugin": "headrace_jax",
    "tf-plugin": "headrace_tf",
    "squirrel-source": "headrace_squirrel",
    "ray-plugin": "headrace_ray",
}
LEAF = {
    "headrace_torch": ("headrace/plugin/pytorch/", "headrace/experimental/torchvision/"),
    "headrace_jax": ("headrace/plugin/jax/",),
    "headrace_tf": ("headrace/plugin/tf/",),
    "headrace_squirrel": ("headrace/plugin/squirrel/",),
    "headrace_ray": ("headrace/plugin/ray/",),
}


def run(*command: str | Path, cwd: Path) -> str:
    done = subprocess.run(
        [str(part) for part in command],
        capture_output=True,
        text=True,
        check=False,
        cwd=cwd,
        env={k: v for k, v in os.environ.items() if k != "PYTHONPATH"},
    )
    assert done.returncode == 0, f"{done.stdout}\n{done.stderr}"
    return done.stdout


@pytest.fixture(scope="module")
def dist(tmp_path_factory):
    """Folder with every sdist, and with every wheel built from its sdist."""
    folder = tmp_path_factory.mktemp("dist")
    for package in DISTRIBUTIONS:
        source = ROOT / "packages" / package
        run(sys.executable, "-m", "build", "--no-isolation", "--outdir", folder, source, cwd=folder)
    return folder


def wheel_of(dist: Path, name: str) -> Path:
    return dist / f"{name}-{VERSION}-py3-none-any.whl"


@pytest.fixture(scope="module")
def python(dist, tmp_path_factory):
    """Python of a fresh environment with every wheel."""
    folder = tmp_path_factory.mktemp("environment")
    venv.create(folder, with_pip=True)
    python = folder / "bin" / "python"
    pip = [python, "-m", "pip", "--disable-pip-version-check", "--no-input"]
    run(*pip, "install", "--quiet", wheel_of(dist, "headrace"), cwd=folder)
    run(*pip, "check", cwd=folder)
    plugins = [wheel_of(dist, name) for name in LEAF]
    run(*pip, "install", "--quiet", "--no-deps", *plugins, cwd=folder)
    where = run(python, "-c", "import sysconfig; print(sysconfig.get_path('purelib'))", cwd=folder)
    Path(where.strip(), "lent.pth").write_text(sysconfig.get_path("purelib") + "\n")
    return python


@pytest.fixture
def run_code(python, tmp_path):
    """Run Python code there; from a folder of its own, with warnings as errors."""
    return lambda code: run(python, "-I", "-W", "error", "-c", code, cwd=tmp_path)


@pytest.mark.parametrize("name", DISTRIBUTIONS.values())
class TestContents:
    def test_wheel_brings_its_own_folder_only(self, dist, name):
        names = zipfile.ZipFile(wheel_of(dist, name)).namelist()
        files = [n for n in names if ".dist-info/" not in n]
        folders = LEAF.get(name, ("headrace/",))
        assert all(n.startswith(folders) for n in files)
        assert {f"{f}{n}" for f in folders for n in ("__init__.py", "py.typed")} <= {*files}
        made = (".py", ".pyi", "py.typed", ".cu", ".cuh", ".json", ".kernel")
        assert all(n.endswith(made) for n in files)

    def test_wheel_and_sdist_bring_licence_and_readme(self, dist, name):
        with zipfile.ZipFile(wheel_of(dist, name)) as wheel:
            info = f"{name}-{VERSION}.dist-info"
            metadata = email.message_from_bytes(wheel.read(f"{info}/METADATA"))
            assert "Apache License" in wheel.read(f"{info}/licenses/LICENSE").decode()
        assert metadata["License-Expression"] == "Apache-2.0"
        assert metadata["Requires-Python"] == ">=3.11"
        assert metadata.get_payload().startswith("# headrace")
        with tarfile.open(dist / f"{name}-{VERSION}.tar.gz") as sdist:
            names = {n.partition("/")[2] for n in sdist.getnames()}
        assert {"LICENSE", "README.md", "CHANGELOG.md", "pyproject.toml"} <= names
        assert not any(n.startswith(("tests", "changes")) for n in names)


FIRST_BATCH = """
import os, tempfile
import numpy as np, simplejpeg
from numba.core import event
from headrace import fn, pipeline_def, types

class Compiled(event.Listener):
    found = []
    def on_start(self, started): self.found.append(str(started.data["dispatcher"]))
    def on_end(self, ended): pass

event.register("numba:compile", Compiled())
root, os.environ["HEADRACE_CACHE_DIR"] = tempfile.mkdtemp(), tempfile.mkdtemp()
pixels = np.random.default_rng(1).integers(0, 256, (300, 400, 3), np.uint8)
for name in "ab":
    os.mkdir(f"{root}/{name}")
    for number in range(8):
        with open(f"{root}/{name}/{number}.jpg", "wb") as file:
            file.write(simplejpeg.encode_jpeg(pixels, colorsubsampling="420"))

@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=42)
def train():
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, name="reader")
    images = fn.decoders.image_random_crop(jpegs, random_area=[0.08, 1.0])
    images = fn.resize(images, resize_x=224, resize_y=224)
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375], mirror=fn.random.coin_flip(),
    )
    return images, labels

train().run()
print("compiled:", Compiled.found)
"""


def test_kernels_of_the_first_program_come_with_the_wheel(run_code):
    """`tools/gen_kernel_list.py` writes their list."""
    assert run_code(FIRST_BATCH) == "compiled: []\n"


def test_core_wheel_brings_the_stubs(dist):
    """The very ones that an editable install has, in which type checkers find planted mistakes."""
    package = ROOT / "packages" / "core" / "src"
    here = {p.relative_to(package).as_posix(): p.read_text() for p in package.rglob("*.pyi")}
    with zipfile.ZipFile(wheel_of(dist, "headrace")) as wheel:
        assert {n: wheel.read(n).decode() for n in wheel.namelist() if n.endswith(".pyi")} == here
    assert {"headrace/fn/__init__.pyi", "headrace/ops/__init__.pyi"} <= here.keys()


def test_core_runs_with_what_it_declares(run_code):
    out = run_code("""
import sys
import simplejpeg, numpy as np
import headrace
from headrace import fn, pipeline_def, types

jpeg = simplejpeg.encode_jpeg(np.full((40, 60, 3), 200, np.uint8))

@pipeline_def(batch_size=2, num_threads=2, device_id=None, seed=1)
def pipe():
    encoded = fn.external_source(source=lambda: [np.frombuffer(jpeg, np.uint8)] * 2)
    images = fn.resize(fn.decoders.image(encoded), size=(24, 24))
    return fn.crop_mirror_normalize(images, crop=(20, 16), mirror=fn.random.coin_flip())

(images,) = pipe().run()
assert np.array(images.at(1)).shape == (3, 20, 16)
assert "torch" not in sys.modules
print(headrace.__file__, headrace.__version__)
""")
    path, version = out.split()
    assert "environment" in path
    assert version == VERSION


def test_pytorch_plugin_stands_beside_the_core(run_code):
    out = run_code("""
import warnings
import numpy as np
warnings.simplefilter("default")  # PyTorch's own, while it is imported
import torch
warnings.simplefilter("error")
from headrace import fn, pipeline_def
from headrace.plugin import pytorch
from headrace.plugin.base_iterator import LastBatchPolicy

@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def pipe():
    return fn.external_source(source=[np.ones((2, 3), np.float32)], cycle="raise")

(batch,) = next(pytorch.DALIGenericIterator([pipe()], ["data"]))
assert batch["data"].shape == (2, 3) and batch["data"].dtype == torch.float32
assert pytorch.LastBatchPolicy is LastBatchPolicy
print(pytorch.__file__)
""")
    assert "environment" in out


def test_jax_plugin_stands_beside_the_core(run_code):
    out = run_code("""
import jax, numpy as np
from headrace import fn
from headrace.plugin import jax as plugin
from headrace.plugin.base_iterator import LastBatchPolicy

@plugin.data_iterator(output_map=["data"])
def batches():
    return fn.external_source(source=[np.ones((2, 3), np.float32)], cycle="raise")

array = next(batches(batch_size=2, device_id=None))["data"]
assert isinstance(array, jax.Array) and array.shape == (2, 3)
assert plugin.LastBatchPolicy is LastBatchPolicy
print(plugin.__file__)
""")
    assert "environment" in out


def test_squirrel_plugin_needs_no_squirrel(run_code, tmp_path):
    out = run_code(f"""
import gzip, sys
from pathlib import Path
from headrace import fn, pipeline_def
from headrace.plugin import squirrel

shard = Path({str(tmp_path)!r}) / "shard.gz"
shard.write_bytes(gzip.compress(b"\\x81\\xa5label\\x07" * 2))  # twice {{"label": 7}}

@pipeline_def(batch_size=2, num_threads=1, device_id=None)
def pipe():
    read = fn.readers.squirrel(path=shard.parent, fields="label", name="reader")
    return fn.external_source(source=squirrel.source(shard.parent, "label")), read

for batch in pipe().run():
    assert [int(label.as_cpu().__array__()) for label in batch] == [7, 7]
assert not {{"squirrel", "fsspec", "msgpack"}} & set(sys.modules)
print(squirrel.__file__)
""")
    assert "environment" in out


def test_tensorflow_plugin_without_tensorflow_says_what_to_install(run_code):
    out = run_code("""
import sys
sys.modules["tensorflow"] = None  # as if it were not installed
try:
    import headrace.plugin.tf
except ModuleNotFoundError as error:
    print(type(error).__name__, error)
""")
    assert out.startswith("LibraryNotInstalledError")
    assert "pip install 'headrace-tf[tensorflow]'" in out


def test_type_checker_sees_the_operators(python, tmp_path):
    program = tmp_path / "program.py"
    program.write_text(
        "from headrace import fn, ops, types\n"
        "edge = fn.random.uniform(range=[0.0, 1.0])\n"
        "reveal_type(edge)\n"
        "reveal_type(fn.crop(edge, crop=(1, 1)))\n"
        "reveal_type(ops.Crop(crop=(1, 1))(edge))\n"
        "fn.crop(edge, corp=(1, 1))\n"
    )
    done = subprocess.run(
        [sys.executable, "-m", "mypy", "--python-executable", str(python), str(program)],
        capture_output=True,
        text=True,
        check=False,
        cwd=tmp_path,
    )
    assert done.stdout.count('"headrace.graph.data_node.DataNode"') == 3, done.stdout
    assert 'program.py:6: error: Unexpected keyword argument "corp"' in done.stdout
    assert done.returncode == 1


def test_removing_the_plugins_leaves_the_core(run_code, python, tmp_path):
    # Last in the file: it takes the plugins away from the environment that the others share.
    for name in LEAF:
        run(python, "-m", "pip", "uninstall", "--quiet", "--yes", name, cwd=tmp_path)
    out = run_code("""
from headrace import fn, plugin
from headrace.plugin import base_iterator
try:
    import headrace.plugin.pytorch
except ModuleNotFoundError as error:
    print(error.name, error, sep="\\n")
""")
    name, text = out.strip().splitlines()
    assert name == "headrace.plugin.pytorch"
    assert "`pip install headrace-torch`" in text
