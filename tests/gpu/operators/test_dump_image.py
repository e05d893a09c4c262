"""`dump_image` on the GPU writes the files of the CPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import errors, fn, pipeline_def


def dumped(folder, device, images):
    @pipeline_def(batch_size=len(images), num_threads=1, device_id=0, prefetch_queue_depth=1)
    def p():
        data = fn.external_source(lambda: images, layout="HWC")
        return fn.dump_image(data.gpu() if device == "gpu" else data, suffix="a")

    (out,) = p().run()
    found = [np.array(sample) for sample in out.as_cpu()]
    return found, {path.name: path.read_text() for path in folder.iterdir()}


def test_files(tmp_path, monkeypatch):
    rng = np.random.default_rng(0)
    images = [rng.integers(0, 256, (n, n + 2, 3), np.uint8) for n in (4, 1, 7)]
    results = []
    for device in ("cpu", "gpu"):
        (tmp_path / device).mkdir()
        monkeypatch.chdir(tmp_path / device)
        found, files = dumped(tmp_path / device, device, images)
        for got, want in zip(found, images, strict=True):
            np.testing.assert_array_equal(got, want)
        results.append(files)
    assert results[0] == results[1]
    assert sorted(results[0]) == ["0-a-0.ppm", "1-a-0.ppm", "2-a-0.ppm"]


def test_what_cannot_be_written(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    images = [np.zeros((2, 2, 3), np.uint8), np.zeros((2, 2, 2), np.uint8)]
    with pytest.raises(errors.ShapeError, match=r"(?s)1 or 3 channels.*sample 1"):
        dumped(tmp_path, "gpu", images)
