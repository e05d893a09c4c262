"""Constants on the GPU: uploaded once."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import types
from headrace.kernels.gpu.shared_sample import SharedSample
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator
from tests.support.gpu.session import GpuSession, gpu_session


@pytest.mark.sweep
@pytest.mark.parametrize("shape", [(), (0,), (3,), (2, 1, 4)])
@pytest.mark.parametrize("dtype", [np.uint8, np.float32, bool])
def test_arrays(shape, dtype):
    value = np.arange(np.prod(shape, dtype=int)).reshape(shape).astype(dtype)
    got = run_gpu_operator("_constant_tensor", value=value, batch_size=3)
    assert len(got) == 3
    for row in got:
        np.testing.assert_array_equal(row, value)


def test_enumerations():
    value = np.array([1, 2], np.int32)
    args = {"value": value, "dtype": types.INTERP_TYPE, "batch_size": 2}
    np.testing.assert_array_equal(run_gpu_operator("_constant_tensor", **args), [value] * 2)


def test_constant():
    args = {"fdata": [1.5, 2.5], "dtype": types.UINT8, "batch_size": 2}
    got = run_gpu_operator("constant", **args)
    np.testing.assert_array_equal(got, run_cpu_operator_on_batch("constant", **args))


def test_one_copy_serves_all_batches_and_streams(gpu_runtime):
    value = np.arange(6, dtype=np.int16).reshape(2, 3)
    with gpu_session() as first:
        shared = SharedSample(first.queue, value)
        batch = shared.batch(first.queue, 4)
        assert len(set(batch.pointers.tolist())) == 1
        with gpu_session() as second:
            assert isinstance(second, GpuSession)
            again = shared.batch(second.queue, 2)
            assert again.pointers[0] == batch.pointers[0]
            np.testing.assert_array_equal(second.download(again), [value] * 2)
        np.testing.assert_array_equal(first.download(batch), [value] * 4)
