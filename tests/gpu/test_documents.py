"""The programs of docs/gpu-operators.md and docs/operators.md, exactly as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.errors import ArgumentValueError
from tests.support.worked_examples import declared, maps, pfm, write_records

PAGE = Path(__file__).parents[2] / "docs" / "gpu-operators.md"


@pytest.mark.usefixtures("gpu_runtime")
def test_operators_of_a_user():
    names: dict[str, object] = {"__name__": "gpu_operators"}
    blocks = re.findall(r"```python\n(.*?)```", PAGE.read_text(), flags=re.DOTALL)
    assert len(blocks) == 3
    for block in blocks:
        exec(compile(block, str(PAGE), "exec"), names)
    brighter = names["run"](0, names["images"])
    assert not any((brighter[0].at(k) == names["images"][k]).all() for k in range(4))


@pytest.fixture
def examples():
    with declared() as names:
        yield names


@pytest.mark.usefixtures("gpu_runtime", "examples")
def test_the_pixel_operator_of_the_other_page():
    contents = [np.random.default_rng(k).integers(0, 256, (4 + k, 9, 3), np.uint8) for k in (0, 3)]
    alike = [contents[0], contents[0][::-1].copy()]
    steps = np.int32([1, 3])

    def run(device_id, images, step):
        pipe = Pipeline(batch_size=2, num_threads=1, device_id=device_id, seed=1)
        with pipe:
            data = fn.external_source(lambda: images, layout="HWC")
            data = data if device_id is None else data.gpu()
            given = step if np.isscalar(step) else fn.external_source(lambda: step)
            pipe.set_outputs(fn.subsample(data, step=given, gain=1.7))
        return [np.asarray(sample) for sample in pipe.run()[0].as_cpu()]

    for images in (contents, alike):
        for step in (2, steps):
            for ours, theirs in zip(run(0, images, step), run(None, images, step), strict=True):
                np.testing.assert_array_equal(ours, theirs)
    with pytest.raises(ArgumentValueError, match=r"at least 1, got 0") as caught:
        run(0, contents, np.int32([1, 0]))
    assert "sample 1" in str(caught.value)


@pytest.mark.usefixtures("gpu_runtime")
def test_all_examples_together(tmp_path, examples):
    write_records(tmp_path / "maps", [pfm(m) for m in maps()], list(range(6)))
    on_cpu = examples["depth"](str(tmp_path / "maps"), device_id=None, seed=1).run()
    on_gpu = examples["depth"](str(tmp_path / "maps"), device="gpu", device_id=0, seed=1).run()
    for ours, theirs in zip(on_gpu, on_cpu, strict=True):
        for a, b in zip(ours.as_cpu(), theirs, strict=True):
            np.testing.assert_array_equal(np.asarray(a), np.asarray(b))
