"""The notebook on Keras, which the environment of the documentation cannot run."""

from __future__ import annotations

from tests.e2e.support import REPOSITORY


def test_keras(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = REPOSITORY / "docs/notebooks/keras.py"
    names = {"__name__": "keras"}
    exec(compile(path.read_text(), str(path), "exec"), names)
    assert names["images"].shape == (8, 48, 48, 3)
    assert len(names["history"].history["loss"]) == 3
