"""The example of Squirrel's tutorial, as a user runs it, on a small data set."""

from __future__ import annotations

import re
from pathlib import Path

import cv2
import pytest

from tests.e2e.support import run_python

for module in ("matplotlib", "skimage", "sklearn", "torch"):
    pytest.importorskip(module)


def test_it_runs_and_draws(tmp_path: Path) -> None:
    options = ["--folder", str(tmp_path / "data"), "--plots", str(tmp_path / "plots")]
    options += ["--samples", "16", "--shards", "4", "--batch-size", "4", "--threads", "1", "2"]
    shown = run_python("-m", "examples.squirrel.tutorial", *options).stdout
    assert len(re.findall(r"\d samples/s", shown)) >= 9
    for name in ("images.png", "rates.png"):
        plot = cv2.imread(str(tmp_path / "plots" / name))
        assert plot.std() > 20  # there is something to see
