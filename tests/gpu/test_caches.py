"""`fn.cache` behind a decoder on the GPU: samples are kept on the host."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.executor.loader import Loader
from tests.support.images import class_folders

pytestmark = pytest.mark.usefixtures("roomy_caches")


def test_decoded_on_the_gpu(tmp_path, monkeypatch):
    class_folders(tmp_path / "images", 7)
    read: list[int] = []
    load = Loader._load

    def counted(self, entries, empty):
        read.extend(entries.tolist())
        return load(self, entries, empty)

    monkeypatch.setattr(Loader, "_load", counted)

    def run(where: str | None) -> list[object]:
        pipe = Pipeline(3, num_threads=2, device_id=0, prefetch_queue_depth=1)
        with pipe:
            content, label = fn.readers.file(file_root=str(tmp_path / "images"))
            images = fn.resize(fn.decoders.image(content, device="mixed"), size=(12, 14))
            if where is not None:
                images = fn.cache(images, where=where)
            pipe.set_outputs(fn.flip(images, horizontal=1), images, label.gpu())
        return [
            [[s.tolist() for s in map(np.array, o.as_cpu())] for o in pipe.run()] for _ in range(6)
        ]

    wanted = run(None)
    assert run(str(tmp_path / "cache")) == wanted
    read.clear()
    assert run(str(tmp_path / "cache")) == wanted
    assert not read
