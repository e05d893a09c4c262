"""Pipelines that take a GPU where there is one, and leave it alone where that is forbidden."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, errors, fn
from headrace.executor import fallback
from headrace.tensors import TensorListCPU, TensorListGPU
from headrace.tensors.gpu.runtime import get_runtime, is_available


def moving(device_id):
    pipe = Pipeline(2, 1, device_id)
    with pipe:
        pipe.set_outputs(fn.flip(fn.constant(idata=[1, 2, 3, 4], shape=[2, 2, 1]).gpu()))
    return pipe


def test_auto_takes_the_gpu(emulated_gpu):
    pipe = moving("auto")
    assert pipe.device_id == 0
    (batch,) = pipe.run()
    assert isinstance(batch, TensorListGPU)
    np.testing.assert_array_equal(batch.as_cpu().as_array()[1].ravel(), [2, 1, 4, 3])


@pytest.mark.parametrize("device_id", ["auto", 0, None])
def test_never_leaves_it_alone(emulated_gpu, device_id, gpu_is_off):
    with pytest.warns(UserWarning, match="HEADRACE_GPU is 'never'"):
        (batch,) = moving(device_id).run()
    assert isinstance(batch, TensorListCPU)
    np.testing.assert_array_equal(batch.as_array()[1].ravel(), [2, 1, 4, 3])
    assert not is_available()
    assert ndd.Device.current() == ndd.Device.CPU
    with pytest.raises(errors.GpuNotAvailableError, match="no GPU may be used"):
        get_runtime(7)
    assert fallback.why_none()
