"""Kernels of one process, loaded in another before it forks workers."""

from __future__ import annotations

import pickle
import subprocess
import sys

import numpy as np

from headrace.kernels.loaded import LoadedKernels, load_kernels, loaded_kernels
from headrace.kernels.plan.windows import leaves

_ELSEWHERE = """
import pickle, sys
from headrace.kernels.loaded import load_kernels, loaded_kernels
load_kernels(pickle.load(sys.stdin.buffer))
sys.stdout.buffer.write(pickle.dumps(loaded_kernels()))
"""


def _called() -> None:
    window = np.zeros((1, 2), np.int64)
    leaves(window, window + 1, window + 2, np.zeros(1, np.bool_))


def test_another_process_loads_what_this_one_has():
    _called()
    ours = loaded_kernels()
    assert ("headrace.kernels.plan.windows", "leaves") in [f[:2] for f in ours.functions]
    done = subprocess.run(
        [sys.executable, "-c", _ELSEWHERE], input=pickle.dumps(ours), capture_output=True
    )
    assert done.returncode == 0, done.stderr.decode()
    theirs = pickle.loads(done.stdout)
    assert set(ours.modules) <= set(theirs.modules)
    assert ours.libraries == theirs.libraries
    found = {f[:2]: set(f[2]) for f in theirs.functions}
    assert all(
        set(signatures) <= found[module, name] for module, name, signatures in ours.functions
    )


def test_kernels_that_are_gone_or_do_not_compile_are_left_out():
    _called()
    windows = "headrace.kernels.plan.windows"
    before = list(leaves.signatures)
    load_kernels(
        LoadedKernels(
            ["/nowhere/libnothing.so"],
            ["headrace.kernels.nothing"],
            [
                ("headrace.kernels.nothing", "nothing", [()]),
                (windows, "nothing", [()]),
                (windows, "leaves", [()]),  # of no argument
            ],
        )
    )
    assert leaves.signatures == before
