"""The benchmark of the GPU's kernels runs what it measures."""

from __future__ import annotations

import pytest

from benchmarks.gpu_kernels import Bench
from benchmarks.support.kernel_cases import cases
from headrace.tensors.gpu.device import get_device


@pytest.mark.parametrize("name", ["copy", "flip, horizontal", "random.uniform", "mean of channels"])
def test_a_case_of_the_benchmark_runs(name):
    device = get_device(0)
    device.runtime.activate()
    bench = Bench(device, 3, (12, 9), smoke=True)
    (case,) = [case for case in cases(3, (7, 5)) if case.name == name]
    for ragged in (False, True)[: 1 + (case.dtype is not None)]:
        _, _, moved = bench.measure(case, ragged=ragged)
        assert moved > 0
