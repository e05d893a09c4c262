"""What a pipeline says of itself."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace.tensors._repr import shape_range


@pytest.fixture
def pipe():
    pipe = Pipeline(2, 1, None, seed=7)
    images = [np.zeros((4 + k, 6, 3), np.uint8) for k in range(2)]
    with pipe:
        source = fn.external_source(lambda: images, layout="HWC", name="camera")
        turned = fn.rotate(source, angle=fn.random.uniform(range=[1, 2]), size=[5, 5])
        unused = fn.copy(source)
        pipe.set_outputs(source, fn.cast(turned, dtype=types.FLOAT))
    assert unused is not None
    return pipe


def test_one_line(pipe):
    assert repr(Pipeline(2, 1, None)) == (
        "Pipeline(batch_size=2, num_threads=1, device_id=None, built=False)"
    )
    assert repr(pipe) == (
        "Pipeline(batch_size=2, num_threads=1, device_id=None, seed=7, operators=4, outputs=2, "
        "built=False)"
    )
    pipe.build()
    assert repr(pipe).endswith("built=True)")


def test_nothing_is_built_to_print(pipe):
    assert "fn.rotate" in str(pipe)
    assert "fn.copy" not in str(pipe), "what is not needed does not run"
    assert repr(pipe).endswith("built=False)")


def test_table_of_operators(pipe):
    pipe.run()
    lines = [line.split("  ") for line in str(pipe).splitlines()[1:]]
    cells = [[cell.strip() for cell in line if cell.strip()] for line in lines]
    assert [row[:-1] for row in cells] == [
        ["#", "operator", "device", "inputs", "outputs"],
        ["0", 'fn.external_source "camera"', "cpu", "UINT8 HWC (4..5, 6, 3)"],
        ["1", "fn.random.uniform", "cpu", "FLOAT"],
        ["2", "fn.rotate", "cpu", "0, angle=1", "UINT8 HWC"],
        ["3", "fn.cast", "cpu", "2", "FLOAT HWC (5, 5, 3)"],
    ]
    assert all("test_printing.py:" in row[-1] for row in cells[1:])


def test_table_for_notebooks(pipe):
    html = pipe._repr_html_()
    assert html.count("<tr>") == 1 + 4
    assert "fn.external_source &quot;camera&quot;" in html


@pytest.mark.parametrize(
    ("shapes", "text"),
    [
        ([], ""),
        ([()], "()"),
        ([(3,), (3,)], "(3,)"),
        ([(3, 1), (2, 1), (5, 1)], "(2..5, 1)"),
    ],
)
def test_shapes(shapes, text):
    assert shape_range(shapes) == text
