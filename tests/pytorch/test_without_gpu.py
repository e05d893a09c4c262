"""Iterators of a program for a GPU give tensors of the host where there is to be none."""

from __future__ import annotations

import pytest
import torch

from headrace import Pipeline, errors, fn
from headrace.plugin.pytorch import (
    DALIClassificationIterator,
    DALIGenericIterator,
    DALIRaggedIterator,
)
from headrace.plugin.pytorch.fn import torch_python_function
from headrace.tensors.gpu.runtime import is_available


@pytest.mark.parametrize("make", [DALIClassificationIterator, DALIRaggedIterator])
@pytest.mark.parametrize("device_id", [0, "auto"])
def test_iterators(tmp_path, make, device_id, gpu_is_off):
    files = []
    for k in range(5):
        files.append(tmp_path / f"{k}.bin")
        files[k].write_bytes(bytes([k]) * 3)
    with pytest.warns(UserWarning, match="asks for a GPU"):
        pipe = Pipeline(2, 1, device_id)
    with pipe:
        data, label = fn.readers.file(files=[str(f) for f in files], name="reader")
        doubled = torch_python_function(data.gpu(), function=lambda x: x * 2, device="gpu")
        pipe.set_outputs(doubled, label.gpu())
    arguments = {} if make is DALIClassificationIterator else {"output_map": ["data", "label"]}
    batches = [b for (b,) in make(pipe, reader_name="reader", **arguments)]
    found = [value for b in batches for part in b.values() for value in part]
    assert {str(value.device) for value in found} == {"cpu"}
    assert torch.stack([row for b in batches for row in b["data"]])[:5, 0].tolist() == [
        0,
        2,
        4,
        6,
        8,
    ]


@pytest.mark.parametrize("device", ["cuda", "cuda:1", 0])
def test_a_device(device, gpu_is_off):
    pipe = Pipeline(2, 1)
    with pipe:
        pipe.set_outputs(fn.external_source(lambda k: torch.full((2, 3), k)))
    with pytest.warns(UserWarning, match="`device`, GPU ., asks for a GPU, and the CPU does"):
        it = DALIGenericIterator(pipe, ["x"], device=device)
    for k in range(3):
        (step,) = next(it)
        assert step["x"].device.type == "cpu"
        assert step["x"].tolist() == [[k] * 3] * 2


@pytest.mark.parametrize("device", ["cuda", "cuda:0"])
def test_a_device_that_is_not_there(device):
    if is_available():
        pytest.skip("there is a GPU")
    pipe = Pipeline(2, 1)
    with pipe:
        pipe.set_outputs(fn.external_source(lambda: torch.zeros((2, 3))))
    with pytest.raises(errors.GpuNotAvailableError, match=r"CuPy|driver|GPU"):
        DALIGenericIterator(pipe, ["x"], device=device)
