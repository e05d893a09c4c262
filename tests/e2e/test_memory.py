"""A long run needs no more memory than a short one, and works in the same buffers."""

from __future__ import annotations

import json
import os
import sys

import pytest

from tests.e2e.support import one_file_a_class, run_python

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc")

TRAINING = """
import gc, json, sys
from pathlib import Path
from headrace import fn, pipeline_def, types
from headrace.executor.processes.shared_pool import SHARED_POOL
from headrace.plugin.pytorch import DALIGenericIterator, LastBatchPolicy
from headrace.tensors.pool import HOST_POOL

POOL = SHARED_POOL if sys.argv[3] == "processes" else HOST_POOL

@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=1, workers=sys.argv[3])
def train(root, on_path):
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, name="reader")
    if on_path == "fused":
        images = fn.decoders.image_random_crop(jpegs)
    else:
        images = fn.decoders.image(jpegs)
        images = fn.flip(images, horizontal=fn.random.coin_flip())
        images = fn.brightness_contrast(images, brightness=fn.random.uniform(range=[0.8, 1.2]))
        images = fn.rotate(images, angle=fn.random.uniform(range=[-9.0, 9.0]))  # ragged
    images = fn.resize(images, size=[48, 48])
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mean=[100.0], std=[50.0],
        mirror=fn.random.coin_flip(),
    )
    return images, labels

def resident():
    return int(Path("/proc/self/statm").read_text().split()[1]) * 4096

loader = DALIGenericIterator(
    train(sys.argv[1], sys.argv[2]), ["image", "label"], reader_name="reader",
    last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True,
)
done, sizes, made, last = 0, {}, {}, None
while done < 300:
    for (batch,) in loader:
        last = batch["image"].sum()  # somebody uses it
        done += 1
        if done in (100, 300):
            gc.collect()
            sizes[done], made[done] = resident(), POOL.stats().buffers_made
            if done == 300:
                break
stats = POOL.stats()
del batch, loader
gc.collect()
print(json.dumps({
    "growth": sizes[300] - sizes[100],
    "new buffers": made[300] - made[100],
    "made": stats.buffers_made,
    "reused": stats.buffers_reused,
    "idle": stats.bytes_idle,
    "left": POOL.stats().buffers_in_use,
}))
"""


NEEDS_LINUX = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")
WORKERS = ["threads", pytest.param("processes", marks=NEEDS_LINUX)]


@pytest.mark.sweep
@pytest.mark.parametrize("workers", WORKERS)
@pytest.mark.parametrize("path", ["fused", "many operators"])
def test_training(path, workers, tmp_path):
    root = one_file_a_class(tmp_path, 61, height=60, width=80)
    found = json.loads(run_python("-c", TRAINING, str(root), path, workers).stdout)
    assert found["growth"] < 3 << 20
    # Room that worker processes are given is as large as what they needed last, which varies.
    assert found["new buffers"] <= (4 if workers == "threads" else 16)
    assert found["made"] < 60
    assert found["reused"] > 500
    assert found["idle"] < 16 << 20
    assert found["left"] == 0


@pytest.mark.parametrize(
    "workers", ["threads", pytest.param("processes", marks=[pytest.mark.nightly, NEEDS_LINUX])]
)
def test_nothing_is_kept_of_what_goes_wrong(workers):
    """A short soak. In a long one memory may grow by 1 %; this one is still warming up."""
    options = ["--iterations", "300", "--seconds", "120", "--seed", "3", "--workers", workers]
    result = run_python("-m", "benchmarks.soak", *options, "--growth", "0.1", check=False)
    print(result.stdout)
    assert (result.returncode, result.stderr) == (0, "")
    for event in ("breaks", "resets", "MishapError", "bad files", "pipelines dropped"):
        assert event in result.stdout
