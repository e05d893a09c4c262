"""What an iterator says of itself."""

from __future__ import annotations

import numpy as np

from headrace import Pipeline, fn
from headrace.plugin.base_iterator import _DaliBaseIterator


class Batches(_DaliBaseIterator):
    """Gives batches as they are."""

    def _assemble(self, batches):
        return batches


def iterator():
    pipe = Pipeline(2, 1, None)
    samples = [np.zeros((2, 3), np.uint8)] * 6
    with pipe:
        pipe.set_outputs(fn.external_source(iter(samples), layout="X"))
    return Batches(pipe, output_map=["data"])


def test_one_line_and_a_table():
    it = iterator()
    assert repr(it) == "Batches(batch_size=2, pipelines=1, outputs=['data'], batches=0)"
    next(it)
    assert repr(it).endswith("batches=1)")
    html = it._repr_html_()
    assert html.count("<tr>") == 2
    assert "UINT8 X (3,) on the cpu" in html


def test_length_of_the_epoch(tmp_path):
    for k in range(5):
        (tmp_path / f"{k}.bin").write_bytes(b"abc")
    pipe = Pipeline(2, 1, None)
    with pipe:
        files = [str(path) for path in tmp_path.iterdir()]
        pipe.set_outputs(fn.readers.file(files=files, name="reader")[0])
    it = Batches(pipe, reader_name="reader")
    next(it)
    assert repr(it) == "Batches(batch_size=2, pipelines=1, reader_name='reader', batches=1 of 3)"
    assert "<td" in it._repr_html_()
