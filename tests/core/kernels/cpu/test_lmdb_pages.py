"""Data bases of LMDB beside its own library: random ones, with a past; and damaged ones."""

from __future__ import annotations

import random

import lmdb
import pytest

from headrace.kernels.cpu.lmdb_pages import read_extents
from tests.support.fuzz import mutants

PAGE = 4096


def fill(base, rng):
    """Several transactions that put, replace and remove entries of all sizes."""
    edges = [0, 1, 2000, *(k * PAGE - 16 + d for k in (1, 2, 5) for d in (-1, 0, 1))]
    for _ in range(rng.randint(1, 6)):
        with base.begin(write=True) as work:
            for _ in range(rng.randint(0, 250)):
                key = rng.randbytes(rng.choice([1, 2, 8, 30, 511]))
                size = rng.choice(edges) if rng.random() < 0.1 else rng.randint(0, 300)
                work.put(key, rng.randbytes(size))
            keys = [key for key, _ in work.cursor()]
            for key in rng.sample(keys, rng.randint(0, len(keys))):
                work.delete(key)


def entries(path):
    content = path.read_bytes()
    keys, offsets, sizes = read_extents(str(path))
    places = zip(keys, offsets.tolist(), sizes.tolist(), strict=True)
    return [(key, content[offset : offset + size]) for key, offset, size in places]


@pytest.mark.parametrize("seed", range(6))
def test_random_data_bases(tmp_path, seed):
    rng = random.Random(seed)
    with lmdb.open(str(tmp_path / "a"), map_size=1 << 26, writemap=bool(seed % 2)) as base:
        fill(base, rng)
        with base.begin() as work:
            want = list(work.cursor())
        (tmp_path / "b").mkdir()
        base.copy(str(tmp_path / "b"), compact=True)
    assert entries(tmp_path / "a" / "data.mdb") == want
    assert entries(tmp_path / "b" / "data.mdb") == want


def test_damaged_data_bases(tmp_path):
    """What is damaged is refused, or has its entries within the file, in order."""
    with lmdb.open(str(tmp_path / "a"), map_size=1 << 26) as base:
        fill(base, random.Random(7))
        with base.begin(write=True) as work:
            for k in range(120):
                work.put(b"key %03d" % k, b"x" * (k % 7 * 900))
    content = (tmp_path / "a" / "data.mdb").read_bytes()
    path = tmp_path / "b.mdb"
    refused = 0
    for mutant in mutants(content, 300, hot=len(content)):
        path.write_bytes(mutant)
        try:
            keys, offsets, sizes = read_extents(str(path))
        except ValueError:
            refused += 1
            continue
        assert keys == sorted(set(keys))
        assert ((offsets >= 0) & (offsets + sizes <= len(mutant))).all()
    assert 30 < refused < 300
