"""Global arrays are what the pipelines gave, one after the other, and lie where shardings say."""

from __future__ import annotations

import functools
import tempfile
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

jax = pytest.importorskip("jax")

from jax.sharding import Mesh, NamedSharding, PartitionSpec  # noqa: E402 - where there is JAX

from headrace.plugin.base_iterator import (  # noqa: E402
    LastBatchPolicy,
    PipelineBatch,
    _DaliBaseIterator,
)
from headrace.plugin.jax import data_iterator  # noqa: E402
from tests.jax.pipelines import OUTPUTS, file_pipeline, read  # noqa: E402

MESHES = [
    ((1,), ("x",)),
    ((3,), ("x",)),
    ((8,), ("x",)),
    ((4, 2), ("x", "y")),
    ((2, 4), ("x", "y")),
    ((2, 2, 2), ("x", "y", "z")),
]


class Plain(_DaliBaseIterator):
    """Rows of all pipelines, one behind the other."""

    def _assemble(self, batches: list[PipelineBatch]):
        return [
            np.concatenate([b.outputs[k].as_array()[: b.kept] for b in batches]) for k in range(2)
        ]


@functools.cache
def files():
    folder = Path(tempfile.mkdtemp())
    for k in range(30):
        (folder / f"{k:02}.bin").write_bytes(bytes([k]) * 8)
    return [str(path) for path in sorted(folder.iterdir())]


@st.composite
def specs(draw, axes):
    names = draw(st.permutations(axes))
    return PartitionSpec(tuple(names[: draw(st.integers(0, len(axes)))]) or None)


@given(data=st.data())
def test_arrays_are_what_pipelines_gave(data):
    shape, axes = data.draw(st.sampled_from(MESHES), "mesh")
    count = int(np.prod(shape))
    order = data.draw(st.permutations(jax.devices("cpu")), "devices")
    mesh = Mesh(np.array(order[:count]).reshape(shape), axes)
    shardings = {name: NamedSharding(mesh, data.draw(specs(list(axes)), name)) for name in OUTPUTS}
    parts = max(int(np.prod([mesh.shape[a] for a in s.spec[0] or ()])) for s in shardings.values())
    number = data.draw(st.integers(max(1, parts), 30), "files")
    each = data.draw(st.integers(1, 3), "rows of a part")
    policy = data.draw(st.sampled_from(list(LastBatchPolicy)), "policy")
    split = data.draw(st.booleans(), "split")
    options = {
        "pad_last_batch": data.draw(st.booleans(), "pad"),
        "random_shuffle": data.draw(st.booleans(), "shuffle"),
        "stick_to_shard": data.draw(st.booleans(), "stick"),
    }
    if policy is LastBatchPolicy.DROP and number // (1 if split else parts) < each * (
        parts if split else 1
    ):
        return  # there would not be a single batch

    @data_iterator(
        output_map=OUTPUTS,
        reader_name="reader",
        sharding=shardings,
        last_batch_policy=policy,
        split_batches=split,
    )
    def make(num_shards, shard_id):
        return read(files()[:number], num_shards, shard_id, **options)

    it = make(batch_size=each * parts, seed=3, num_threads=1)
    shards = 1 if split else parts
    reference = Plain(
        [
            file_pipeline(
                files()[:number],
                shards,
                k,
                batch_size=each * parts // shards,
                seed=3,
                **options,
            )
            for k in range(shards)
        ],
        reader_name="reader",
        last_batch_policy=policy,
    )
    for _ in range(2):
        for step, rows in zip(it, reference, strict=True):
            for name, expected in zip(OUTPUTS, rows, strict=True):
                array, wanted = step[name], shardings[name]
                np.testing.assert_array_equal(array, expected)
                cut = int(np.prod([mesh.shape[a] for a in wanted.spec[0] or ()]))
                if len(expected) % cut:
                    assert array.is_fully_replicated
                else:
                    assert array.sharding.is_equivalent_to(wanted, array.ndim)
                assert array.sharding.device_set == wanted.device_set
                for shard in array.addressable_shards:
                    np.testing.assert_array_equal(shard.data, expected[shard.index])
