"""The facts that declarations are compared with are those of the installed DALI."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path


def test_facts_are_up_to_date():
    tool = Path(__file__).parents[2] / "tools" / "gen_dali_facts.py"
    done = subprocess.run(
        [sys.executable, str(tool), "--check"], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
