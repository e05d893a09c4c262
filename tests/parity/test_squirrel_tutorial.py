"""Squirrel's tutorial on DALI: both libraries, fed by the same Composable."""

from __future__ import annotations

from itertools import chain
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from squirrel.driver import MessagepackDriver

from benchmarks.support.libraries import library
from tests.squirrel.shards import write_shard

BATCH_SIZE = 4


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    rng = np.random.default_rng(0)
    for shard in range(3):
        samples = [
            {"image": rng.random((40 + shard, 44, 3), np.float32), "label": np.array(k)}
            for k in range(5)
        ]
        write_shard(tmp_path / f"shard_{shard}.gz", samples)
    return tmp_path


def as_tuple(sample: dict[str, Any]) -> tuple[np.ndarray, np.ndarray]:
    return np.array(sample["image"], np.float32), sample["label"]


def collated(samples: list[Any]) -> tuple[list[np.ndarray], list[np.ndarray]]:
    images, labels = zip(*samples, strict=True)
    return list(images), list(labels)


def epochs(name: str, source: Any, **arguments: Any) -> list[list[tuple[np.ndarray, np.ndarray]]]:
    """The samples of two epochs."""
    lib = library(name)

    @lib.pipeline_def(batch_size=BATCH_SIZE, num_threads=2, device_id=None)
    def pipeline() -> Any:
        images, labels = lib.fn.external_source(source=source, num_outputs=2, **arguments)
        images = lib.fn.crop(images, crop=(30, 30))
        return lib.fn.rotate(images, angle=30.0, fill_value=0.0, keep_size=True), labels

    pipe = pipeline()
    pipe.build()
    found = []
    for _ in range(2):
        samples: list[tuple[np.ndarray, np.ndarray]] = []
        while True:
            try:
                images, labels = pipe.run()
            except StopIteration:
                break
            samples += [
                (np.array(images.at(k)), np.array(labels.at(k))) for k in range(len(images))
            ]
        found.append(samples)
        pipe.reset()
    return found


@pytest.mark.filterwarnings("ignore:This epoch is empty:UserWarning")  # without `cycle`
@pytest.mark.parametrize("cycle", [None, "raise"])
@pytest.mark.parametrize("batched", [False, True])
def test_the_tutorial(folder: Path, batched: bool, cycle: Any) -> None:
    def source() -> Any:
        items = MessagepackDriver(str(folder)).get_iter().map(as_tuple)
        return items.batched(BATCH_SIZE, collation_fn=collated) if batched else items

    ours, dalis = (
        epochs(name, source(), batch=batched, cycle=cycle) for name in ("Headrace", "DALI")
    )
    assert [len(epoch) for epoch in ours] == [len(epoch) for epoch in dalis]
    for one, other in zip(chain(*ours), chain(*dalis), strict=True):
        np.testing.assert_allclose(one[0], other[0], atol=1e-5)
        np.testing.assert_array_equal(one[1], other[1])
        assert one[1].dtype == other[1].dtype


def test_a_dictionary_is_an_error_for_both(folder: Path) -> None:
    for name in ("Headrace", "DALI"):
        with pytest.raises((KeyError, TypeError, RuntimeError)):
            epochs(name, MessagepackDriver(str(folder)).get_iter(), batch=False)
