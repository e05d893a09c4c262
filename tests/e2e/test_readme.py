"""The program of README.md: what it gives, that it copies nothing, and that DALI gives the same."""

from __future__ import annotations

import gc
import inspect
import re
from typing import Any

import numpy as np
import nvidia.dali
import nvidia.dali.types
import pytest
import torch

import examples.demo.train
from headrace.executor.processes.shared_pool import SHARED_POOL
from headrace.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
from headrace.tensors.pool import HOST_POOL
from tests.e2e.support import REPOSITORY, one_file_a_class

FILES = 70


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    """A folder with the data set `photos`."""
    folder = tmp_path_factory.mktemp("readme")
    one_file_a_class(folder / "photos", FILES, height=90, width=120)
    return folder


@pytest.fixture(scope="module")
def program():
    (code,) = re.findall(r"```python\n(.*?)```", (REPOSITORY / "README.md").read_text(), re.DOTALL)
    return code


@pytest.fixture
def names(program, folder, monkeypatch):
    """The names the program defines, and its batches."""
    monkeypatch.chdir(folder)
    collecting, count = re.subn(r"^    \.\.\. ", "    batches.append(batch) ", program, flags=re.M)
    assert count == 1
    names: dict[str, Any] = {"batches": []}
    exec(compile(collecting, "README.md", "exec"), names)
    return names


def test_it_runs_as_it_stands_there(program, folder, monkeypatch):
    monkeypatch.chdir(folder)
    exec(compile(program, "README.md", "exec"), {})


def test_its_labels_are_what_a_loss_takes(names):
    assert names["labels"].shape == (6,)
    scores = torch.zeros(6, FILES)
    assert torch.nn.functional.cross_entropy(scores, names["labels"]) > 0


def test_an_epoch_shows_each_file_once(names):
    assert [len(batch) for batch in names["batches"]] == [1, 1]
    images = [batch[0]["image"] for batch in names["batches"]]
    assert [tuple(i.shape) for i in images] == [(64, 3, 224, 224), (6, 3, 224, 224)]
    assert {i.dtype for i in images} == {torch.float32}
    labels = [batch[0]["label"] for batch in names["batches"]]
    assert [tuple(k.shape) for k in labels] == [(64, 1), (6, 1)]
    assert {k.dtype for k in labels} == {torch.int32}
    shown = torch.cat(labels).flatten().tolist()
    assert sorted(shown) == list(range(FILES))
    assert shown != sorted(shown)  # shuffled
    assert -2.2 < images[0].min() < 0 < images[0].max() < 2.7


def iterate(pipeline):
    return DALIGenericIterator(
        pipeline,
        ["image", "label"],
        reader_name="reader",
        last_batch_policy=LastBatchPolicy.PARTIAL,
        auto_reset=True,
    )


def test_the_same_seed_gives_the_same_tensors(names, folder):
    again = iterate(names["train"]("photos", num_threads=1, prefetch_queue_depth=1))
    for (first,), (second,) in zip(names["batches"], again, strict=True):
        assert torch.equal(first["image"], second["image"])
        assert torch.equal(first["label"], second["label"])
    other = next(iterate(names["train"]("photos", seed=43)))[0]
    assert not torch.equal(names["batches"][0][0]["label"], other["label"])


def test_tensors_are_the_memory_of_the_pipeline(names):
    pipeline = names["train"]("photos", batch_size=8)
    pipeline.schedule_run()
    images, _ = pipeline.share_outputs()
    address = images.as_array().ctypes.data
    assert torch.from_dlpack(images.as_tensor()).data_ptr() == address
    assert torch.utils.dlpack.from_dlpack(images.as_tensor()).data_ptr() == address


def idle_memory(shape):
    """Addresses that arrays of this shape may get now, whatever carries samples."""
    found = set()
    for pool in (HOST_POOL, SHARED_POOL):
        count = pool.stats().buffers_idle + 1
        found |= {a.ctypes.data for a in [pool.empty(shape, np.float32) for _ in range(count)]}
    return found


def test_memory_is_not_used_again_before_its_tensor_is_gone(names):
    loader = iter(iterate(names["train"]("photos", batch_size=8)))
    held = next(loader)[0]["image"]
    content, shape = held.clone(), tuple(held.shape)
    address = held.data_ptr()
    for _ in range(5):
        assert next(loader)[0]["image"].data_ptr() != address
    assert torch.equal(held, content)
    view = held[3, :, 1:]  # any view keeps the memory
    del held
    for (batch,) in loader:
        assert batch["image"].data_ptr() != address
    del loader, batch  # and with them the threads, which would take memory meanwhile
    gc.collect()
    assert address not in idle_memory(shape)
    assert torch.equal(view, content[3, :, 1:])
    del view
    assert address in idle_memory(shape)


def dali_validation_pipeline(*arguments, **options):
    """The validation pipeline of the demo, its text run with DALI's names."""
    names = {
        "pipeline_def": nvidia.dali.pipeline_def,
        "fn": nvidia.dali.fn,
        "types": nvidia.dali.types,
        "Any": Any,
        "MEAN": examples.demo.train.MEAN,
        "STD": examples.demo.train.STD,
    }
    text = inspect.getsource(inspect.unwrap(examples.demo.train.validation_pipeline))
    assert "fn.resize(fn.decoders.image(jpegs)" in text
    exec(text, names)
    return names["validation_pipeline"](*arguments, **options)


def test_the_validation_pipeline_gives_what_dali_gives(folder):
    options = {"batch_size": 8, "num_threads": 2}
    root = str(folder / "photos")
    theirs = dali_validation_pipeline(root, 56, **options)
    theirs.build()
    ours = examples.demo.train.validation_pipeline(root, 56, **options)
    level = 1 / np.array(examples.demo.train.STD).reshape(3, 1, 1)
    differing = total = 0
    for _ in range(10):
        (expected, expected_labels), (images, labels) = theirs.run(), ours.run()
        np.testing.assert_array_equal(labels.as_array(), expected_labels.as_array())
        assert images.layout() == expected.layout()
        a, b = images.as_array(), expected.as_array()
        assert (a.shape, a.dtype) == (b.shape, b.dtype)
        off = np.abs(a - b) / level
        assert off.max() <= 1.001
        differing += np.count_nonzero(off > 0.01)
        total += off.size
    assert differing <= 0.002 * total
