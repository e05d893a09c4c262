"""The programs in the documentation of the TensorFlow plugin, and its example, as they stand."""

from __future__ import annotations

import re

import pytest

from examples.tf import keras_training
from tests.e2e.support import REPOSITORY, one_file_a_class


@pytest.mark.parametrize("page", ["docs/tensorflow.md", "packages/tf-plugin/README.md"])
def test_page(page, tmp_path, monkeypatch, capsys):
    one_file_a_class(tmp_path / "photos", 20)
    (tmp_path / "images").symlink_to(tmp_path / "photos")
    monkeypatch.chdir(tmp_path)
    programs = re.findall(r"```python\n(.*?)```", (REPOSITORY / page).read_text(), re.DOTALL)
    program = "\n".join(programs)
    names = {}
    exec(compile(program, page, "exec"), names)
    assert names["images"].shape[2:] == (names["images"].shape[2], 3)
    assert names["labels"].shape == (len(names["images"]), 1)


def test_example(capsys):
    losses = keras_training.main(["--images=48", "--epochs=1"])
    assert losses["Headrace"] == pytest.approx(losses["tf.data"], abs=2e-3)
    assert "samples/s" in capsys.readouterr().out
