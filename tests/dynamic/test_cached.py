"""`ndd.CachedFunction`: the function is called for samples that are not kept, and for no others."""

from __future__ import annotations

import shutil
from typing import Any

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace.cli import caches
from headrace.errors import HeadraceError
from tests.support.images import encoded

pytestmark = pytest.mark.usefixtures("roomy_caches")

IMAGES = [encoded(20 + k, 30) for k in range(6)]


class Counted:
    def __init__(self) -> None:
        self.calls: list[int] = []

    def __call__(self, files: Any) -> Any:
        self.calls.append(files.batch_size if isinstance(files, ndd.Batch) else 1)
        return ndd.decoders.image(files)


def rows(batch: Any) -> list[np.ndarray]:
    return [np.asarray(t) for t in batch.tensors]


def same(found: Any, numbers: list[int]) -> None:
    wanted = rows(ndd.decoders.image(ndd.batch([IMAGES[k] for k in numbers])))
    assert found.layout == "HWC"
    for a, b in zip(rows(found), wanted, strict=True):
        assert a.dtype == b.dtype == np.uint8
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize("mode", list(ndd.EvalMode), ids=lambda mode: mode.name)
def test_only_what_is_missing(tmp_path, mode):
    counted = Counted()
    with mode:
        decode = ndd.CachedFunction(counted, key="plain", where=tmp_path)
        for numbers in ([0, 1, 2], [2, 3, 0], [5, 5, 1], [3, 2, 1]):
            same(decode(ndd.batch([IMAGES[k] for k in numbers])), numbers)
        np.testing.assert_array_equal(
            np.asarray(decode(ndd.tensor(IMAGES[4]))), np.asarray(decode(IMAGES[4]))
        )
    assert counted.calls == [3, 1, 2, 1]
    again = Counted()
    same(
        ndd.CachedFunction(again, key="plain", where=tmp_path)(ndd.batch(IMAGES)),
        [0, 1, 2, 3, 4, 5],
    )
    assert again.calls == []
    ndd.CachedFunction(again, key="another", where=tmp_path)(ndd.batch(IMAGES))
    assert again.calls == [6]
    assert [cache.number for cache in caches.found([tmp_path])] == [6, 6]
    assert caches.clear([tmp_path]) > 0
    assert caches.found([tmp_path]) == []
    same(decode(ndd.batch(IMAGES[:2])), [0, 1])  # removed while in use
    assert counted.calls[4:] == [2]


def test_damaged_and_in_memory(tmp_path, monkeypatch):
    monkeypatch.setenv("HEADRACE_RAM_CACHE", str(tmp_path))
    counted = Counted()
    decode = ndd.CachedFunction(counted, key="k")
    decode(ndd.batch(IMAGES))
    (data,) = tmp_path.rglob("data-*")
    content = bytearray(data.read_bytes())
    content[len(content) // 2] ^= 1
    data.write_bytes(content)
    same(ndd.CachedFunction(counted, key="k")(ndd.batch(IMAGES)), [0, 1, 2, 3, 4, 5])
    assert counted.calls == [6, 1]
    with pytest.warns(UserWarning, match="takes no more"):
        same(
            ndd.CachedFunction(counted, key="l", limit_bytes=0)(ndd.batch(IMAGES)),
            [0, 1, 2, 3, 4, 5],
        )
    shutil.rmtree(tmp_path)


def test_several_inputs(tmp_path):
    add = ndd.CachedFunction(lambda a, b: a + b, key="sum", where=tmp_path)
    for _ in range(2):
        found = add(ndd.batch([np.int32([1, 2]), np.int32([3])]), ndd.batch(np.int32([[1], [2]])))
        assert [row.tolist() for row in rows(found)] == [[2, 3], [5]]


@pytest.mark.parametrize(
    ("call", "words"),
    [
        (lambda p: ndd.CachedFunction(3, key="k", where=p), "`function`"),
        (lambda p: ndd.CachedFunction(len, key="", where=p), "`key`"),
        (lambda p: ndd.CachedFunction(len, key="k", where=p, limit_bytes=-1), "`limit_bytes`"),
        (lambda p: ndd.CachedFunction(id, key="k", where=p)(ndd.batch(IMAGES)), "returned"),
        (lambda p: ndd.CachedFunction(len, key="k", where=p)(), "nothing"),
        (
            lambda p: ndd.CachedFunction(len, key="k", where=p)(ndd.batch(IMAGES), IMAGES[0]),
            "one size",
        ),
    ],
)
def test_errors(tmp_path, call, words):
    with pytest.raises(HeadraceError, match=words):
        call(tmp_path)
