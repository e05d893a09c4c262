"""Batches of images of many sizes are written to one piece of page-locked memory, and copied at
once.
"""

from __future__ import annotations

from itertools import chain

import cv2
import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.executor.cpu.packed_rows import PackedRows
from headrace.kernels.gpu import transfer
from headrace.tensors.pool import HOST_POOL

COUNT = 12


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(5)
    for number in range(COUNT):
        extents = (int(rng.integers(20, 90)), int(rng.integers(20, 90)), 3)
        path = str(folder / f"{number:02}.png")
        assert cv2.imwrite(path, rng.integers(0, 255, extents, np.uint8))
    return sorted(str(p) for p in folder.iterdir())


@pytest.fixture
def gathers(monkeypatch):
    """How often a kernel had to collect rows."""
    seen = []
    gather = transfer.gather

    def counted(*args):
        seen.append(args)
        gather(*args)

    monkeypatch.setattr(transfer, "gather", counted)
    return seen


def batches(files, runs, **traits):
    pipe = Pipeline(batch_size=4, device_id=0, **{"num_threads": 2, "seed": 3, **traits})
    with pipe:
        encoded, _ = fn.readers.file(files=files, name="reader")
        pipe.set_outputs(fn.decoders.image(encoded).gpu())
    pipe.build()
    for _ in range(runs):
        host = pipe.run()[0].as_cpu()
        yield [np.array(host.at(i)) for i in range(len(host))]


@pytest.mark.in_threads  # each worker process has a piece of memory of its own
@pytest.mark.parametrize("threads", [1, 3])
def test_pixels_and_number_of_copies(files, gathers, threads):
    expected = [cv2.imread(path)[..., ::-1] for path in files]
    found = chain.from_iterable(batches(files, 12, num_threads=threads))
    for number, image in enumerate(found):
        np.testing.assert_array_equal(image, expected[number % COUNT])
    # What comes first teaches how much a batch takes; those that were begun by then do not know.
    assert len(gathers) <= 8


def test_bad_samples_leave_gaps(files, tmp_path):
    bad = tmp_path / "bad.png"
    bad.write_bytes(b"no image")
    mixed = [files[0], str(bad), *files[1:]]
    expected = {cv2.imread(path)[..., ::-1].tobytes() for path in files}
    found = {i.tobytes() for i in chain(*batches(mixed, 9, on_bad_sample="skip"))}
    assert found == expected


def test_a_slab_lends_what_it_has():
    packed = PackedRows(HOST_POOL, 190)
    rows = [packed.empty((5, 13), np.dtype(np.uint8)) for _ in range(3)]
    assert rows[0] is not None
    assert rows[1] is None  # 128 bytes are gone
    assert packed.wanted == 3 * 128
    assert rows[0].ctypes.data % 64 == 0
    assert PackedRows(HOST_POOL, 0).empty((1,), np.dtype(np.uint8)) is None
