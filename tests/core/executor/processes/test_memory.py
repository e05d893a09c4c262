"""Memory of pipelines in worker processes: handed over without a copy, kept, and given back."""

from __future__ import annotations

import gc
import json
import os

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from tests.e2e.support import run_python

pytestmark = pytest.mark.skipif(not hasattr(os, "memfd_create"), reason="needs Linux")

BATCH, SHAPE = 7, (64, 32, 3)
BATCH_BYTES = BATCH * 64 * 32 * 3 * 4


def counting():
    """Batches of float32, each filled with its own number."""
    numbers = iter(range(10**6))

    @pipeline_def(batch_size=BATCH, num_threads=2, device_id=None, workers="processes")
    def p():
        x = fn.external_source(lambda: [np.full(SHAPE, next(numbers), np.uint8)] * BATCH)
        return fn.cast(x, dtype=types.FLOAT)

    return p()


def of_pytorch(pipe):
    torch = pytest.importorskip("torch")
    from headrace.plugin.pytorch import DALIGenericIterator

    for (batch,) in DALIGenericIterator(pipe, ["x"]):
        assert isinstance(batch["x"], torch.Tensor)
        yield batch["x"], batch["x"].data_ptr()


def of_jax(pipe):
    jax = pytest.importorskip("jax")
    from headrace.plugin.jax import DALIGenericIterator

    for batch in DALIGenericIterator(pipe, ["x"]):
        assert isinstance(batch["x"], jax.Array)
        yield batch["x"], batch["x"].unsafe_buffer_pointer()


@pytest.mark.parametrize("iterator", [of_pytorch, of_jax])
def test_frameworks_have_the_memory_that_workers_wrote_to(iterator):
    from headrace.executor.processes.shared_pool import SHARED_POOL

    pipe = counting()
    batches = iterator(pipe)
    for number in range(5):
        array, address = next(batches)
        file = SHARED_POOL._current
        assert 0 <= address - file.address <= file.size - BATCH_BYTES
        assert array.shape == (BATCH, *SHAPE)
        assert float(array[-1, -1, -1, -1]) == number
    assert pipe.executor_statistics()["workers"] == "processes"


@pytest.mark.parametrize("iterator", [of_pytorch, of_jax])
def test_a_hundred_batches_that_are_kept(iterator):
    from headrace.executor.processes.shared_pool import SHARED_POOL

    gc.collect()
    before = SHARED_POOL.stats().bytes_in_use
    batches = iterator(counting())
    kept = [next(batches) for _ in range(100)]
    assert len({address for _, address in kept}) == 100
    for number, (array, _) in enumerate(kept):
        assert (np.asarray(array) == number).all()
    # What is worked on ahead, too, and sizes are rounded up.
    held = SHARED_POOL.stats().bytes_in_use - before
    assert 100 * BATCH_BYTES <= held <= 100 * BATCH_BYTES * 5 // 4
    del array, kept
    gc.collect()
    assert SHARED_POOL.stats().bytes_in_use - before < 10 * BATCH_BYTES


LONG = """
import gc, json, os, sys
from pathlib import Path
import numpy as np
from headrace import fn, pipeline_def
from headrace.executor.processes.pool import POOL
from headrace.executor.processes.shared_pool import SHARED_POOL

rng = np.random.default_rng(5)
fed = [rng.integers(0, 255, (k % 5, 40, 30), np.uint8) for k in range(8)]

@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1, workers="processes")
def p():
    x = fn.external_source(lambda info: fed[info.idx_in_epoch % 8], batch=False)
    y = fn.python_function(x + 1, function=lambda v: v * np.float32(2))
    return fn.cast(x, dtype=np.int32), y + fn.random.uniform(range=[0.0, 1.0])

def pss(pid):
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) << 10 for line in lines if line.startswith(("Pss_Anon",)))

def seen():
    gc.collect()
    SHARED_POOL.trim()
    return {
        "program": pss("self"),
        "workers": max(map(pss, POOL.pids())),
        "processes": len(POOL.pids()),
        "files": len(os.listdir("/proc/self/fd")),
        "shared": os.fstat(SHARED_POOL._current.descriptor).st_blocks * 512,
    }

first, last = map(int, sys.argv[1:])
pipe = p()
found = []
for k in range(1, last + 1):
    pipe.run()
    if k in (first, last):
        found.append(seen())
print(json.dumps(found))
"""


@pytest.mark.parametrize(
    ("first", "last"), [(100, 300), pytest.param(4000, 20_000, marks=pytest.mark.nightly)]
)
def test_long_runs(first, last):
    before, after = json.loads(run_python("-c", LONG, str(first), str(last), timeout=3000).stdout)
    print(before, after)
    assert after["program"] - before["program"] < 3 << 20
    assert after["workers"] - before["workers"] < 3 << 20
    assert after["processes"] == before["processes"] == 2
    assert after["files"] <= before["files"] + 1  # threads may have one open just then
    assert after["shared"] < 2 << 20
