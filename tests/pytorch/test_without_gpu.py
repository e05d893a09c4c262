"""Iterators of a program for a GPU give tensors of the host where there is to be none."""

from __future__ import annotations

import pytest
import torch

from headrace import Pipeline, fn
from headrace.plugin.pytorch import DALIClassificationIterator, DALIRaggedIterator
from headrace.plugin.pytorch.fn import torch_python_function


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
