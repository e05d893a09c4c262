"""Functions compiled by Numba as operators."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from headrace.errors import GpuNotAvailableError
from headrace.plugin import numba
from headrace.plugin.numba import function_operator

RAGGED = [np.arange(n * 3, dtype=np.int32).reshape(n, 3) for n in (2, 4, 1)]
INT32 = {"in_types": [types.INT32], "out_types": [types.INT32], "ins_ndim": [2], "outs_ndim": [2]}


def run(function, **options):
    @pipeline_def(batch_size=3, num_threads=2, device_id=None)
    def pipe():
        x = fn.external_source(source=lambda: RAGGED, layout="HW")
        return numba.fn.numba_function(x, run_fn=function, **{**INT32, **options})

    (found,) = pipe().run()
    return [np.array(sample).tolist() for sample in found]


def transpose(out, x):
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            out[j, i] = x[i, j]


def transposed(outs, ins):
    for k in range(len(outs[0])):
        outs[0][k][0] = ins[0][k][1]
        outs[0][k][1] = ins[0][k][0]


def test_shapes_of_a_setup_function():
    assert run(transpose, setup_fn=transposed) == [x.T.tolist() for x in RAGGED]


def test_a_batch():
    def total(outs, xs):
        number = 0
        for x in xs:
            number += x.sum()
        for out in outs:
            out[:] = number

    number = sum(int(x.sum()) for x in RAGGED)
    assert run(total, batch_processing=True) == [np.full_like(x, number).tolist() for x in RAGGED]


def test_the_gpu_is_asked_for_by_name(monkeypatch):
    import numba.cuda as cuda

    monkeypatch.setattr(cuda, "is_available", lambda: False)
    with pytest.raises(GpuNotAvailableError, match="numba-cuda"):
        function_operator._cuda()


def test_wrong_arguments():
    for options, kind in (
        ({"in_types": [types.UINT8]}, TypeError),
        ({"ins_ndim": [3]}, ValueError),
        ({"outs_ndim": [1]}, ValueError),
        ({"outs_ndim": 2}, TypeError),
    ):
        with pytest.raises(kind, match=r"in_types|ndim"):
            run(transpose, **options)
