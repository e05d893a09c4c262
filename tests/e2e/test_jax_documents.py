"""The programs in the documentation of the JAX plugin run as they stand there."""

from __future__ import annotations

import re

import jax
import numpy as np
import pytest
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from headrace import Pipeline, fn, types
from tests.e2e.support import REPOSITORY, one_file_a_class


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the data sets `photos` and `images`."""
    folder = tmp_path_factory.mktemp("documents")
    one_file_a_class(folder / "photos", 20)
    (folder / "images").symlink_to(folder / "photos")
    return folder


def programs(path):
    return re.findall(r"```python\n(.*?)```", (REPOSITORY / path).read_text(), re.DOTALL)


def test_readme(folder, monkeypatch, capsys):
    monkeypatch.chdir(folder)
    (program,) = programs("packages/jax-plugin/README.md")
    exec(compile(program, "README.md", "exec"), {})
    count = len(jax.devices())
    shown = capsys.readouterr().out
    assert f"({64 * count}, 224, 224, 3) NamedSharding" in shown


def test_page(folder, monkeypatch):
    """One program after the other, with the names that the text takes for granted."""
    monkeypatch.chdir(folder)
    steps = []
    names = {
        "jax": jax,
        "fn": fn,
        "Mesh": Mesh,
        "NamedSharding": NamedSharding,
        "PartitionSpec": PartitionSpec,
        "train_step": lambda state, batch: steps.append(batch),
        "state": None,
        "images": None,
    }
    one, many, resumed, function, on_all_devices = programs("docs/jax.md")
    exec(compile(one, "docs/jax.md", "exec"), names)
    assert names["batch"]["images"].shape == (8, 256, 256, 3)
    exec(compile(many, "docs/jax.md", "exec"), names)
    assert [batch["images"].sharding for batch in steps] == [names["sharding"]] * len(steps)
    assert steps[0]["labels"].shape == (64, 1)
    exec(compile(resumed, "docs/jax.md", "exec"), names)
    next(names["iterator"])
    defined, _, used = function.rpartition("flipped = ")
    exec(compile(defined, "docs/jax.md", "exec"), names)
    assert "flip(fn.resize(images, size=(256, 256)))" in used
    image = np.arange(12, dtype=np.float32).reshape(2, 2, 3)
    with Pipeline(2, 1, None) as pipe:
        pipe.set_outputs(names["flip"](fn.cast(image, dtype=types.FLOAT)))
    for found in pipe.run()[0]:
        np.testing.assert_array_equal(found, image[:, ::-1])
    names["np"] = np
    exec(compile(on_all_devices, "docs/jax.md", "exec"), names)
    count = len(jax.devices())
    with Pipeline(2 * count, 1, None) as pipe:
        pipe.set_outputs(names["normalise"](fn.cast(image, dtype=types.FLOAT)))
    for found in pipe.run()[0]:
        np.testing.assert_allclose(found, (image - image.mean()) / 255, rtol=1e-6, atol=1e-7)
