"""Pipelines with work for a GPU are resumed exactly, with batches in flight there."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.plugin.base_iterator import PipelineBatch, _DaliBaseIterator
from tests.support.images import encoded


@pytest.fixture
def files(tmp_path: Path) -> list[str]:
    paths = [tmp_path / f"{k}.jpg" for k in range(7)]
    for k, path in enumerate(paths):
        path.write_bytes(encoded(20 + k, 30 - k, seed=k).tobytes())
    return [str(path) for path in paths]


def pipeline(files: list[str], checkpoint: bytes | None = None, **engine: Any) -> Pipeline:
    pipe = Pipeline(
        3, device_id=0, enable_checkpointing=True, checkpoint=checkpoint, **{"seed": 1, **engine}
    )
    with pipe:
        jpegs, labels = fn.readers.file(files=files, random_shuffle=True, initial_fill=4)
        images = fn.resize(fn.decoders.image(jpegs).gpu(), size=[8, 8])
        noise = fn.random.normal(images, device="gpu")
        fed = fn.external_source([np.full((3, 1), k, np.int32) for k in range(5)], cycle="quiet")
        there = fn.external_source(lambda k: np.full((3, 2), k, np.float32), device="gpu")
        outputs = (
            fn.flip(images, horizontal=fn.random.coin_flip()),
            noise,
            labels.gpu(),
            fed.gpu(),
            there,
        )
        pipe.set_outputs(*outputs)
    return pipe


def values(batches: Any) -> list[list[Any]]:
    return [[np.asarray(sample).tolist() for sample in batch.as_cpu()] for batch in batches]


@pytest.mark.parametrize("before", [0, 1, 4, 9])
def test_resumed(files: list[str], before: int) -> None:
    whole = pipeline(files, num_threads=2, prefetch_queue_depth=3)
    for _ in range(before):
        whole.run()
    resumed = pipeline(files, whole.checkpoint(), num_threads=1, prefetch_queue_depth=1, seed=9)
    for _ in range(6):
        assert values(resumed.run()) == values(whole.run())
    assert resumed.checkpoint() == whole.checkpoint()


class Batches(_DaliBaseIterator):
    """Gives the values of whole batches."""

    def _assemble(self, batches: list[PipelineBatch]) -> list[list[Any]]:
        return values(batches[0].outputs)


def test_resumed_in_place(files: list[str]) -> None:
    one, other = (Batches(pipeline(files, num_threads=2, seed=seed)) for seed in (1, 2))
    for _ in range(3):
        one.next()
    state = one.state_dict()
    expected = [one.next() for _ in range(4)]
    other.next()
    for iterator in (one, other, other):
        iterator.load_state_dict(state)
        assert [iterator.next() for _ in range(4)] == expected
