"""Side data in JAX's iterators: lists, also of several pipelines."""

from __future__ import annotations

import pytest

from headrace import Pipeline, fn, types
from headrace.plugin.jax import DALIGenericIterator


@pytest.mark.parametrize("shards", [1, 2])
def test_lists(shards, tmp_path) -> None:
    files = []
    for k in range(4):
        files.append(str(tmp_path / f"{k}.bin"))
        (tmp_path / f"{k}.bin").write_bytes(b"[%d]" % k)
    pipes = []
    for shard in range(shards):
        pipe = Pipeline(2, 1, None)
        with pipe:
            data, label = fn.readers.file(
                files=files, labels=range(4), name="r", shard_id=shard, num_shards=shards
            )
            path = fn.decoders.text(fn.get_property(data, key="source_info"))
            pipe.set_outputs(
                label,
                path,
                fn.decoders.json(data),
                fn.decoders.json(data, dtype=types.INT32, ndim=1),
            )
        pipes.append(pipe)
    loop = DALIGenericIterator(
        pipes,
        ["label", "path", "document", "number"],
        reader_name="r",
    )
    labels, paths = [], []
    for batch in loop:
        numbers = batch["label"].ravel().tolist()
        assert batch["document"] == [[number] for number in numbers]
        assert batch["number"].ravel().tolist() == numbers
        labels += numbers
        paths += batch["path"]
    assert sorted(labels) == [0, 1, 2, 3]
    assert paths == [files[k] for k in labels]
