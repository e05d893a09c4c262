"""Definitions that stand for their files in model repositories."""

from __future__ import annotations

import importlib
import sys

import pytest

from headrace import fn, pipeline_def
from headrace.pipeline import Pipeline
from headrace.plugin.triton import autoserialize, invoke_autoserialize

MODEL = """
import math, os, numpy
import headrace
from headrace import fn
import {other}

@headrace.plugin.triton.autoserialize
@headrace.pipeline_def(batch_size=2, num_threads=1)
def preprocess():
    return fn.constant(idata=[4])
"""


@pytest.fixture
def model(tmp_path, monkeypatch):
    monkeypatch.syspath_prepend(tmp_path)
    names = []

    def load(name, other="math"):
        (tmp_path / f"{name}.py").write_text(MODEL.format(other=other))
        names.append(name)
        importlib.invalidate_caches()
        return importlib.import_module(name)

    yield load
    for name in names:
        sys.modules.pop(name, None)


def test_a_model_is_written(model, tmp_path):
    invoke_autoserialize(model("model_a"), str(tmp_path / "model.headrace"))
    (out,) = Pipeline.deserialize(filename=tmp_path / "model.headrace").run()
    assert out.as_array().tolist() == [[4], [4]]


def test_several_or_none(model, tmp_path):
    model("model_b")
    both = model("model_c", other="model_b")
    with pytest.raises(
        RuntimeError, match=r"2 are decorated .* `model_c.preprocess`, `model_b.preprocess`"
    ):
        invoke_autoserialize(both, tmp_path / "f")
    with pytest.raises(RuntimeError, match=r"0 are decorated .*: none"):
        invoke_autoserialize(pytest, tmp_path / "f")
    assert not (tmp_path / "f").exists()


def test_only_definitions_can_be_marked():
    with pytest.raises(TypeError, match="Only `@pipeline_def` can be decorated"):
        autoserialize(lambda: 3)
    definition = pipeline_def(lambda: fn.random.uniform())
    assert autoserialize(definition) is definition
