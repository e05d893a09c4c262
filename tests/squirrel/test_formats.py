"""What comes out of a shard: every kind of value, and every kind of damage."""

from __future__ import annotations

import gzip
import struct
import zlib
from contextlib import closing, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as stn

from headrace.errors import ArgumentValueError, BadSampleError, MissingDependencyError
from headrace.plugin.squirrel import inflate
from headrace.plugin.squirrel.arrays import PickleRefusedError
from headrace.plugin.squirrel.dataset import ShardFolder
from tests.squirrel.shards import numbered, packed, write_json_shard, write_shard


def read(path: Path, fields: set[str] | None = None, **options: Any) -> list[Any]:
    found = []
    with closing(ShardFolder(path.parent).open(path.stem, fields, **options)) as samples:
        while (sample := samples.next()) is not None:
            found.append(sample)
        assert samples.number == len(found)
    return found


def assert_same(value: Any, expected: Any) -> None:
    if isinstance(expected, (np.ndarray, np.generic)):
        assert type(value) is type(expected)
        assert value.dtype == expected.dtype.newbyteorder("=")
        assert value.shape == expected.shape
        np.testing.assert_array_equal(value, expected)
    elif isinstance(expected, dict):
        assert value.keys() == expected.keys()
        for key, each in expected.items():
            assert_same(value[key], each)
    elif isinstance(expected, (list, tuple)):
        assert isinstance(value, tuple)
        for one, other in zip(value, expected, strict=True):
            assert_same(one, other)
    else:
        assert type(value) is type(expected)
        assert value == expected or value != value


ODD = {
    "u1": np.arange(24, dtype=np.uint8).reshape(2, 3, 4),
    "f2": np.linspace(0, 1, 5, dtype=np.float16),
    "big": np.arange(6, dtype=">i4").reshape(3, 2),
    "bool": np.array([True, False]),
    "zero_d": np.array(7),
    "scalar": np.float32(0.5),
    "empty": np.empty((0, 4), np.float32),
    "strided": np.arange(12).reshape(3, 4)[:, ::2],
    "text": np.array(["a", "bc"]),
    "complex": np.array([1 + 2j]),
    "structured": np.array([(1, 2.5)], dtype=[("a", "<i4"), ("b", "<f8")]),
    "nested": {"list": [1, [2.5, None], {"k": b"v"}], "tuple": (True, False)},
    "bytes": b"\x00" * 300,
    "str": "ü" * 40,
    "longer": "x" * 70000,
    "ints": [0, 127, 128, 255, 256, 65535, 65536, 2**40, 2**64 - 1, -1, -32, -33, -200, -40000],
    "wide": [-(2**31), -(2**40), 2**31],
    "many": list(range(20)),
    "nothing": None,
    "imaginary": 1 + 2j,
}


def test_every_kind_of_value(tmp_path: Path) -> None:
    samples = [ODD, {"only": 1}, ODD]
    found = read(write_shard(tmp_path / "a.gz", samples))
    for sample, expected in zip(found, samples, strict=True):
        assert_same(sample, expected)


def test_only_the_named_fields(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "a.gz", [ODD, ODD])
    for sample in read(path, {"u1", "scalar", "missing"}):
        assert_same(sample, {name: ODD[name] for name in ("u1", "scalar")})


def test_skipping_leaves_the_rest_as_it_is(tmp_path: Path) -> None:
    folder = ShardFolder(write_shard(tmp_path / "a.gz", [ODD, {"x": 1}, ODD, {"x": 2}]).parent)
    with closing(folder.open("a")) as samples:
        assert samples.skip()
        assert samples.next() == {"x": 1}
        assert samples.skip()
        assert samples.next() == {"x": 2}
        assert not samples.skip()
        assert samples.next() is None
    assert folder.count("a") == (4, None)


arrays = stn.arrays(
    stn.boolean_dtypes()
    | stn.integer_dtypes(endianness="?")
    | stn.unsigned_integer_dtypes(endianness="?")
    | stn.floating_dtypes(endianness="?", sizes=(16, 32, 64))
    | stn.complex_number_dtypes(sizes=(64, 128)),
    stn.array_shapes(min_dims=0, min_side=0, max_dims=3, max_side=5),
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats()
    | st.text()
    | st.binary(max_size=600)
    | arrays,
    lambda inner: st.lists(inner, max_size=20) | st.dictionaries(st.text(), inner, max_size=20),
    max_leaves=20,
)


@given(samples=st.lists(st.dictionaries(st.text(), values, max_size=4), max_size=5))
def test_what_is_written_is_read(tmp_path_factory: Any, samples: list[Any]) -> None:
    path = write_shard(tmp_path_factory.mktemp("shards") / "a.gz", samples)
    for sample, expected in zip(read(path), samples, strict=True):
        assert_same(sample, expected)


@given(data=st.binary(max_size=200))
def test_garbage_is_an_error_or_samples_and_nothing_else(
    tmp_path_factory: Any, data: bytes
) -> None:
    path = tmp_path_factory.mktemp("shards") / "a.gz"
    for content in (data, gzip.compress(data), gzip.compress(packed(ODD["nested"]) + data)):
        path.write_bytes(content)
        with suppress(BadSampleError):
            read(path)
        ShardFolder(path.parent).count("a")


def test_several_members_and_padding(tmp_path: Path) -> None:
    path = tmp_path / "a.gz"
    members = [gzip.compress(packed({"x": k})) for k in range(3)]
    path.write_bytes(members[0] + members[1] + bytes(1000) + members[2] + bytes(5))
    assert [sample["x"] for sample in read(path)] == [0, 1, 2]


def test_an_empty_shard(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(b"")
    assert read(tmp_path / "a.gz") == []
    assert read(write_shard(tmp_path / "b.gz", [])) == []


def test_pieces_of_any_size(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_shard(tmp_path / "a.gz", [ODD] * 3)
    for size in (1, 7, 100):
        monkeypatch.setattr(inflate, "READ_BYTES", size)
        monkeypatch.setattr(inflate, "MOST_BYTES", size)
        for sample in read(path):
            assert_same(sample, ODD)


@pytest.mark.parametrize("cut", [1, 9, 12, 400, -1, -9])
def test_a_cut_shard_says_so(tmp_path: Path, cut: int) -> None:
    path = write_shard(tmp_path / "a.gz", [{"x": np.random.default_rng(0).bytes(1000)}] * 3)
    path.write_bytes(path.read_bytes()[:cut])
    with pytest.raises(BadSampleError, match=r"Sample \d of the shard '.*a\.gz'.*is cut"):
        read(path)


def test_a_damaged_shard_says_so(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "a.gz", [{"x": np.random.default_rng(0).bytes(1000)}] * 3)
    data = bytearray(path.read_bytes())
    data[-6] ^= 1  # the check sum
    path.write_bytes(data)
    with pytest.raises(BadSampleError, match="damaged"):
        read(path)
    path.write_bytes(b"this is text")
    with pytest.raises(BadSampleError, match="no gzip file"):
        read(path)


def test_a_shape_that_does_not_fit_its_data(tmp_path: Path) -> None:
    described = {b"nd": True, b"type": "<f4", b"kind": b"", b"shape": (3,), b"data": b"1234"}
    with pytest.raises(BadSampleError, match=r"shape \(3,\) and type float32 comes with 4 bytes"):
        read(write_shard(tmp_path / "a.gz", [{"x": described}]))
    described[b"shape"] = (-1,)
    with pytest.raises(BadSampleError, match="shape is"):
        read(write_shard(tmp_path / "a.gz", [{"x": described}]))
    described[b"type"] = "|O"
    with pytest.raises(BadSampleError, match="Python objects"):
        read(write_shard(tmp_path / "a.gz", [{"x": described}]))


def test_a_size_that_nobody_has(tmp_path: Path) -> None:
    head = packed({"x": {b"nd": True, b"type": "<f4", b"shape": (2**30 - 1,)}})
    head = head.replace(b"\x83\xc4\x02nd", b"\x84\xc4\x02nd")
    content = head + packed(b"data") + b"\xc6" + struct.pack(">I", 2**32 - 4) + b"1234"
    (tmp_path / "a.gz").write_bytes(gzip.compress(content))
    with pytest.raises(BadSampleError, match=r"cut|no memory"):
        read(tmp_path / "a.gz")


def test_deep_nesting_is_no_crash(tmp_path: Path) -> None:
    (tmp_path / "a.gz").write_bytes(gzip.compress(b"\x81\xa1x" + b"\x91" * 5000 + b"\x01"))
    with pytest.raises(BadSampleError, match="levels"):
        read(tmp_path / "a.gz")
    assert ShardFolder(tmp_path).count("a") == (1, None)


class _Evil:
    ran = False

    def __reduce__(self) -> Any:
        return _run, ()


def _run() -> int:
    _Evil.ran = True
    return 1


def test_pickles_are_refused_unless_allowed(tmp_path: Path) -> None:
    path = write_shard(tmp_path / "a.gz", [{"x": np.array([_Evil(), 2], object), "y": 1}])
    with pytest.raises(PickleRefusedError, match="allow_pickle=True"):
        read(path)
    assert not _Evil.ran
    assert read(path, {"y"}) == [{"y": 1}]
    (sample,) = read(path, allow_pickle=True)
    assert _Evil.ran
    assert sample["x"].tolist() == [1, 2]


def test_lines_of_json(tmp_path: Path) -> None:
    samples = [
        {"a": np.arange(6, dtype=np.int16).reshape(2, 3), "b": 1, "c": "ü", "d": [1, 2]},
        {"a": np.array(2.5, np.float32), "b": None, "c": "", "d": []},
    ]
    path = write_json_shard(tmp_path / "a.gz", samples)
    for sample, expected in zip(read(path), samples, strict=True):
        assert_same(sample["a"], expected["a"])
        assert {k: sample[k] for k in "bcd"} == {k: expected[k] for k in "bcd"}
    assert [list(sample) for sample in read(path, {"b"})] == [["b"], ["b"]]
    path.write_bytes(gzip.compress(b'{"x": 1}\n\n  \n{"x": 2}\n{"x": '))
    with pytest.raises(BadSampleError, match=r"Sample 2 of the shard .* no JSON"):
        read(path)


def test_folders(tmp_path: Path) -> None:
    with pytest.raises(ArgumentValueError, match="does not exist"):
        ShardFolder(tmp_path / "missing").keys()
    with pytest.raises(ArgumentValueError, match="which is empty"):
        ShardFolder(tmp_path).keys()
    (tmp_path / "notes.txt").write_text("")
    with pytest.raises(ArgumentValueError, match="1 other entries"):
        ShardFolder(tmp_path).keys()
    numbered(tmp_path, [1, 2, 0])
    for url in (tmp_path, str(tmp_path), f"{tmp_path}/", f"file://{tmp_path}"):
        assert ShardFolder(url).keys() == ["shard_000", "shard_001", "shard_002"]


def test_addresses_of_fsspec(tmp_path: Path) -> None:
    fsspec = pytest.importorskip("fsspec")
    numbered(tmp_path, [2, 1])
    memory = fsspec.filesystem("memory")
    for path in tmp_path.glob("*.gz"):
        memory.pipe_file(f"/headrace-test/{path.name}", path.read_bytes())
    try:
        folder = ShardFolder("memory://headrace-test")
        assert folder.keys() == ["shard_000", "shard_001"]
        assert folder.count("shard_000") == (2, None)
        with pytest.raises(ArgumentValueError, match="does not exist"):
            ShardFolder("memory://headrace-missing").keys()
    finally:
        memory.rm("/headrace-test", recursive=True)
    cached = ShardFolder(
        f"file://{tmp_path}",
        {
            "protocol": "simplecache",
            "target_protocol": "file",
            "cache_storage": str(tmp_path / "c"),
        },
    )
    assert cached.keys() == ["shard_000", "shard_001"]
    assert cached.count("shard_001") == (1, None)
    with pytest.raises((ArgumentValueError, MissingDependencyError)):
        ShardFolder("nosuchprotocol://x")


def test_zlib_does_what_isal_does(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = write_shard(tmp_path / "a.gz", [ODD] * 2)
    monkeypatch.setattr(inflate, "_make_inflater", lambda: zlib.decompressobj(31))
    monkeypatch.setattr(inflate, "_INFLATE_ERRORS", (zlib.error,))
    for sample in read(path):
        assert_same(sample, ODD)
