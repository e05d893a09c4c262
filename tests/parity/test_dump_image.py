"""`fn.dump_image` against DALI: files with the same names and numbers."""

from __future__ import annotations

import numpy as np

from tests.parity.support import assert_both_raise, compare_outputs, run_graph

_rng = np.random.default_rng(0)


def test_files(tmp_path, monkeypatch):
    written, outputs = [], []
    for library in ("dali", "headrace"):
        folder = tmp_path / library
        folder.mkdir()
        monkeypatch.chdir(folder)
        found = []
        for channels, suffix in ((3, ""), (1, "gray")):
            images = [np.arange(n * channels, dtype=np.uint8) * 3 for n in (20, 1)]
            shaped = [images[0].reshape(4, 5, channels), images[1].reshape(1, 1, channels)]
            graph = lambda lib, x: lib.fn.dump_image(x, suffix=suffix)  # noqa: B023, E731
            found += run_graph(library, graph, shaped, layouts="HWC", iterations=2)
        outputs.append(found)
        written.append({path.name: path.read_text().split() for path in folder.iterdir()})
    assert written[0] == written[1]
    compare_outputs(*outputs)


def test_errors():
    images = [_rng.integers(0, 256, (4, 5, 3), np.uint8)]
    for bad in (images[0][..., 0], images[0][..., :2], images[0][:0], images[0].astype(np.int16)):
        assert_both_raise(lambda lib, x: lib.fn.dump_image(x), [np.ascontiguousarray(bad)])
    assert_both_raise(
        lambda lib, x: lib.fn.dump_image(x, input_layout="CHW"), images, match="input_layout"
    )
