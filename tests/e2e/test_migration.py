"""Programs written for DALI run after ``nvidia.dali`` is replaced by ``headrace``, with its values.

Each program in `programs/` is a text such as users have; its `main` returns arrays.
"""

from __future__ import annotations

from pathlib import Path
from types import ModuleType

import numpy as np
import pytest

from tests.support.images import class_folders

PROGRAMS = Path(__file__).parent / "programs"

# What one level of an 8-bit image amounts to in the outputs of a program.
LEVEL = {
    "call_time_arguments": 2 / 64,  # a difference of one level is made larger by `contrast`
    "class_pipeline": 1 / 57,
    "copying": 1 / 255,
    "crop_arithmetic": 1.0,
    "external_callable": 0.0,
    "external_iterator": 1.0,
    "feed_input": 0.0,
    "input_sets": 1 / 50,
    "iter_setup": 0.0,
    "pytorch_external": 1.0,
    "pytorch_training": 1 / 57,
    "ragged_boxes": 0.0,
    "schedule_by_hand": 0.0,
    "sequences": 1.0,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("photos")
    class_folders(root, 23)
    return str(root)


def run(name: str, library: str, folder: str) -> list[list[np.ndarray]]:
    path = PROGRAMS / f"{name}.py"
    text = path.read_text().replace("nvidia.dali", library)
    assert library in text
    program = ModuleType(f"{name} with {library}")
    exec(compile(text, str(path), "exec"), vars(program))
    return [[np.asarray(value) for value in batch] for batch in program.main(folder)]


@pytest.mark.filterwarnings("ignore")  # old programs use what is deprecated
@pytest.mark.parametrize("name", sorted(p.stem for p in PROGRAMS.glob("*.py")))
def test_program(name, folder):
    expected = run(name, "nvidia.dali", folder)
    actual = run(name, "headrace", folder)
    assert len(actual) == len(expected) > 0
    differing = total = 0
    for number, (got, want) in enumerate(zip(actual, expected, strict=True)):
        assert [v.dtype for v in got] == [v.dtype for v in want], f"batch {number}"
        assert [v.shape for v in got] == [v.shape for v in want], f"batch {number}"
        for a, b in zip(got, want, strict=True):
            if a.dtype.kind == "U":
                assert a == b
                continue
            off = np.abs(a.astype(np.float64) - b.astype(np.float64))
            rounding = 1e-6 * np.abs(b.astype(np.float64)).max(initial=1.0) * (a.dtype.kind == "f")
            assert off.max(initial=0) <= 1.02 * LEVEL[name] + 4 * rounding, f"batch {number}"
            differing += np.count_nonzero(off > 4 * rounding)
            total += off.size
    assert differing <= 0.002 * total
