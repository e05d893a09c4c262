"""Side data in PyTorch's iterators: lists."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.plugin.pytorch import DALIGenericIterator, DALIRaggedIterator, LastBatchPolicy


@pytest.mark.parametrize("kind", [DALIGenericIterator, DALIRaggedIterator])
def test_lists(kind, tmp_path) -> None:
    files = []
    for k in range(5):
        files.append(str(tmp_path / f"{k}.bin"))
        (tmp_path / f"{k}.bin").write_bytes(bytes([k]))
    pipe = Pipeline(2, 1, None)
    with pipe:
        data, label = fn.readers.file(files=files, labels=range(5), name="reader")
        path = fn.decoders.text(fn.get_property(data, key="source_info"))
        document = fn.decoders.json(fn.decoders.text(data + np.uint8(48)))
        pipe.set_outputs(label, path, document)
    loop = kind(
        pipe,
        ["label", "path", "document"],
        reader_name="reader",
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )
    found = [batch for (batch,) in loop]
    assert [batch["path"] for batch in found] == [files[:2], files[2:4], files[4:]]
    assert [batch["document"] for batch in found] == [[0, 1], [2, 3], [4]]
    assert [batch["label"].ravel().tolist() for batch in found] == [[0, 1], [2, 3], [4]]
