"""The programs of docs/gpu-operators.md, exactly as they stand there."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

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
