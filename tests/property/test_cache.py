"""With `fn.cache` pipelines give what they give without: every reader, resumed anywhere."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from headrace import Pipeline, fn, tfrecord, types
from headrace.executor.loader import Loader
from tests.cases.files import write_files
from tests.cases.reading import READING
from tests.support.images import class_folders

pytestmark = pytest.mark.usefixtures("roomy_caches")

CASES = [c for c in READING if c.schema.reader and "random_shuffle" not in c.args]
NOT_MIXED = {"pad_last_batch", "normalized"}
"""Arguments of cases that are not mixed: it has no meaning there, and takes long."""


@pytest.fixture(scope="module")
def root(tmp_path_factory: pytest.TempPathFactory) -> str:
    folder = tmp_path_factory.mktemp("files")
    write_files(folder)
    return str(folder)


def _reader(case: Any, root: str) -> list[Any]:
    function: Any = fn
    for part in case.name.split("."):
        function = getattr(function, part)
    args = case.constants(types, root)
    if "features" in args:
        kinds = {"bytes": (tfrecord.string, ""), "int64": (tfrecord.int64, 0)}
        args["features"] = {
            name: tfrecord.FixedLenFeature((), *kinds[kind])
            for name, kind in args["features"].items()
        }
    found = function(**args, seed=2)
    if isinstance(found, dict):
        return list(found.values())
    return list(found) if isinstance(found, (list, tuple)) else [found]


WAYS = [(c, mixed) for c in CASES for mixed in (False, True)]
WAYS = [(c, mixed) for c, mixed in WAYS if not mixed or c.args.keys().isdisjoint(NOT_MIXED)]


@pytest.mark.parametrize(
    ("case", "mixed"), WAYS, ids=["-".join((c.name, *c.args, "mix" * m)) for c, m in WAYS]
)
def test_every_reader(case, mixed, root, tmp_path, monkeypatch):
    read: list[int] = []
    load = Loader._load

    def counted(self, entries, empty):
        read.extend(entries.tolist())
        return load(self, entries, empty)

    monkeypatch.setattr(Loader, "_load", counted)

    def run(where: str | None) -> list[Any]:
        pipe = Pipeline(3, num_threads=2, device_id=None)
        with pipe:
            outputs = _reader(case, root)
            number: list[Any] = []
            if mixed:  # every place is there twice
                *outputs, last = fn.readers.mix([outputs, _reader(case, root)], stop="never")
                number = [last]
            if where is not None:
                outputs = [fn.cache(edge, where=where) for edge in outputs]
            pipe.set_outputs(*outputs, *number)
        return [[[np.array(s).tolist() for s in o] for o in pipe.run()] for _ in range(6)]

    wanted = run(None)
    assert run(str(tmp_path)) == wanted
    read.clear()
    assert run(str(tmp_path)) == wanted
    assert not read


@pytest.fixture(scope="module")
def images(tmp_path_factory: pytest.TempPathFactory) -> Any:
    folder = tmp_path_factory.mktemp("images")
    class_folders(folder, 11)
    return folder


@given(
    before=st.integers(0, 9),
    shuffle=st.booleans(),
    engine=st.sampled_from([{"num_threads": 1}, {"num_threads": 4}]),
    other=st.sampled_from([{"num_threads": 1}, {"num_threads": 4}, {"workers": "processes"}]),
    fresh=st.booleans(),
)
@settings(max_examples=8)
def test_resumed(images, before, shuffle, engine, other, fresh):
    """Also where the resumed pipeline has nothing in its cache, or all that the first one kept."""
    where = images.with_name("cache")
    shutil.rmtree(where, ignore_errors=True)

    def make(caches: bool = True, **settings: Any) -> Pipeline:
        settings = {"num_threads": 2, **settings}
        pipe = Pipeline(4, device_id=None, seed=7, enable_checkpointing=True, **settings)
        with pipe:
            content, label = fn.readers.file(file_root=str(images), random_shuffle=shuffle)
            data = fn.resize(fn.decoders.image(content), size=(12, 14))
            data = fn.cache(data, where=str(where)) if caches else data
            pipe.set_outputs(fn.rotate(data, angle=fn.random.uniform(range=(-30, 30))), label)
        return pipe

    def values(pipe: Pipeline, count: int) -> Any:
        return [[[np.array(s).tolist() for s in o] for o in pipe.run()] for _ in range(count)]

    wanted = values(make(caches=False), before + 5)
    first = make(**engine)
    assert values(first, before) == wanted[:before]
    saved = first.checkpoint()
    if fresh:
        shutil.rmtree(where, ignore_errors=True)
    assert values(make(checkpoint=saved, **other), 5) == wanted[before:]
