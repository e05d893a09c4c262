"""Parallel sources of pipelines on a GPU."""

from __future__ import annotations

import gc
import threading

import numpy as np
import pytest

from headrace import Pipeline, fn


def numbers(batch):
    return [np.asarray(sample).reshape(-1)[0] for sample in batch.as_cpu()]


@pytest.mark.parametrize("parallel", [True, "threads"])
@pytest.mark.parametrize("batch", [True, False])
def test_data_of_the_host_is_uploaded(parallel, batch):
    def of_batch(index):
        return [np.full((5, 7), 4 * index + k, np.float32) for k in range(4)]

    def of_sample(info):
        return np.full((5, 7), info.idx_in_epoch, np.float32)

    pipe = Pipeline(4, 2, 0, py_num_workers=2)
    with pipe:
        source = of_batch if batch else of_sample
        node = fn.external_source(source, batch=batch, parallel=parallel, device="gpu")
        pipe.set_outputs(node, fn.copy(node))
    for k in range(6):
        for output in pipe.run():
            assert numbers(output) == list(range(4 * k, 4 * k + 4))
    del pipe
    gc.collect()


@pytest.mark.gpu
@pytest.mark.parametrize("no_copy", [None, True])
@pytest.mark.parametrize("batch", [True, False])
def test_threads_may_return_data_on_the_gpu(batch, no_copy):
    import cupy

    streams = threading.local()

    def on_a_stream_of_its_own():
        # CuPy names the current stream to whoever takes an array, not the one that filled it, so
        # that stream stays current.
        if not hasattr(streams, "used"):
            streams.used = cupy.cuda.Stream(non_blocking=True)
        streams.used.use()

    def of_batch(index):
        on_a_stream_of_its_own()
        return [cupy.full((50, 70), 4 * index + k, cupy.float32) for k in range(4)]

    def of_sample(info):
        on_a_stream_of_its_own()
        return cupy.full((50, 70), info.idx_in_epoch, cupy.float32)

    pipe = Pipeline(4, 2, 0, py_num_workers=2)
    with pipe:
        source = of_batch if batch else of_sample
        pipe.set_outputs(
            fn.external_source(
                source, batch=batch, parallel="threads", device="gpu", no_copy=no_copy
            )
        )
    for k in range(6):
        assert numbers(pipe.run()[0]) == list(range(4 * k, 4 * k + 4))
