"""`decoders.inflate`."""

from __future__ import annotations

import contextlib
import gzip
import zlib

import numpy as np
import pytest

from headrace import Pipeline, errors, fn
from headrace.experimental import dynamic as ndd
from tests.support.lz4_blocks import lz4_block
from tests.support.run_operator import run_operator

_rng = np.random.default_rng(0)
TEXTS = [
    b"",
    b"a",
    b"abcdefgh" * 40,
    b"a" * 5000,
    _rng.integers(0, 256, 3000, np.uint8).tobytes(),
    _rng.integers(0, 3, 70000, np.uint8).tobytes(),
    bytes(600) + _rng.integers(0, 2, 900, np.uint8).tobytes() + bytes(70000),
]


def raw(data):
    squeezer = zlib.compressobj(wbits=-15)
    return squeezer.compress(data) + squeezer.flush()


def compressed(algorithm, data):
    if algorithm == "LZ4":
        return lz4_block(data)
    make = {"zlib": zlib.compress, "gzip": gzip.compress, "raw": raw}[algorithm]
    return np.frombuffer(make(data), np.uint8)


def option(algorithm):
    return {} if algorithm == "LZ4" else {"algorithm": "deflate"}


ALGORITHMS = ("LZ4", "zlib", "gzip", "raw")


@pytest.mark.parametrize("algorithm", ALGORITHMS)
def test_whole_samples(algorithm):
    for text in TEXTS:
        block = compressed(algorithm, text)
        assert len(text) < 100 or algorithm != "LZ4" or text == TEXTS[4] or len(block) < len(text)
        given = option(algorithm)
        got = run_operator("decoders.inflate", block, shape=[len(text)], **given)
        assert got.tobytes() == text
        got = run_operator("decoders.inflate", block, shape=len(text) + 9, **given)
        assert got.tobytes() == text + bytes(9)
        if text:
            with pytest.raises(errors.BadSampleError, match="inflates to more than the"):
                run_operator("decoders.inflate", block, shape=len(text) - 1, **given)
            with pytest.raises(errors.BadSampleError, match=r"too early|damaged"):
                run_operator("decoders.inflate", block[:-1], shape=len(text), **given)


def test_types_and_shapes():
    for dtype in (np.int16, np.float32, np.float64, np.bool_):
        array = _rng.integers(0, 2, (3, 5, 7)).astype(dtype)
        got = run_operator(
            "decoders.inflate",
            lz4_block(array.tobytes()),
            shape=[3, 5, 7],
            dtype=dtype,
        )
        assert got.dtype == dtype
        np.testing.assert_array_equal(got, array)
    assert run_operator("decoders.inflate", lz4_block(b"q"), shape=[]).shape == ()


def test_mutated_blocks_are_refused_or_inflated():
    block = lz4_block(TEXTS[2] + TEXTS[4][:200])
    room = len(TEXTS[2]) + 200
    for _ in range(1500):
        wrong = block.copy()
        wrong[_rng.integers(0, len(block), 3)] = _rng.integers(0, 256, 3)
        with contextlib.suppress(errors.BadSampleError):
            assert run_operator("decoders.inflate", wrong, shape=room).shape == (room,)


def sequences():
    """For each sample its chunks, with different extents and numbers."""
    return [_rng.integers(0, 3, (n, h, 4, 3), np.uint8) for n, h in ((3, 5), (1, 9), (4, 2))]


def packed(chunks, algorithm="LZ4", gap=0):
    blocks = [compressed(algorithm, chunk.tobytes()) for chunk in chunks]
    sizes = np.int32([len(block) for block in blocks])
    apart = np.concatenate([np.concatenate([block, np.zeros(gap, np.uint8)]) for block in blocks])
    offsets = np.int32(np.cumsum([0, *(sizes[:-1] + gap)]))
    return apart, offsets, sizes


@pytest.mark.parametrize("algorithm", ["LZ4", "zlib"])
def test_chunks(algorithm):
    wanted = sequences()
    for offsets, sizes, gap in ((True, True, 3), (True, False, 0), (False, True, 0)):
        made = [packed(chunks, algorithm, gap) for chunks in wanted]
        pipe = Pipeline(batch_size=3, num_threads=2, device_id=None)
        with pipe:
            data, begin, size = (fn.external_source([[m[k] for m in made]]) for k in range(3))
            shape = fn.external_source([[np.int32(w.shape[1:]) for w in wanted]])
            given = {"chunk_offsets": begin} if offsets else {}
            given |= {"chunk_sizes": size} if sizes else {}
            frames = fn.decoders.inflate(
                data, shape=shape, layout="HWC", **given, **option(algorithm)
            )
            pipe.set_outputs(frames, fn.resize(frames, size=[4, 4]))
        found, small = pipe.run()
        assert (found.layout(), small.layout()) == ("FHWC", "FHWC")
        for k, chunks in enumerate(wanted):
            np.testing.assert_array_equal(found.at(k), chunks)
    backwards = [packed(wanted[0])[1:][k][::-1].tolist() for k in (0, 1)]
    got = run_operator(
        "decoders.inflate",
        packed(wanted[0])[0],
        shape=wanted[0].shape[1:],
        chunk_offsets=backwards[0],
        chunk_sizes=backwards[1],
    )
    np.testing.assert_array_equal(got, wanted[0][::-1])
    none = run_operator("decoders.inflate", packed(wanted[0])[0], shape=[2, 3], chunk_sizes=[])
    assert none.shape == (0, 2, 3)


def test_the_old_name_and_dynamic_mode():
    block = lz4_block(TEXTS[2])
    pipe = Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        data = fn.external_source([[block]])
        with pytest.warns(DeprecationWarning, match=r"decoders\.inflate"):
            found = fn.experimental.inflate(data, shape=len(TEXTS[2]))
        pipe.set_outputs(found)
    assert np.asarray(pipe.run()[0].at(0)).tobytes() == TEXTS[2]
    got = ndd.decoders.inflate(block, shape=[len(TEXTS[2])])
    assert np.asarray(got).tobytes() == TEXTS[2]


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"algorithm": "zip"}, '"zip". It may be "LZ4" or "deflate"'),
        ({"sequence_axis_name": "FF"}, 'single character, got "FF"'),
        ({"shape": [-1]}, "non-negative integers"),
        ({"shape": np.int32([[4, 5], [1, 2]])}, "scalar or a 1D tensor, got tensor with 2"),
        ({"chunk_sizes": [6]}, "no more than the 5 bytes of the sample, got 6"),
        ({"chunk_sizes": [0]}, "`chunk_sizes` must be positive"),
        ({"chunk_sizes": [3, 3]}, "from byte 3 to 6, but the sample has 5"),
        ({"chunk_offsets": [0, 5]}, "has 5 bytes; got 5"),
        ({"chunk_offsets": [-1]}, "got -1"),
        ({"chunk_offsets": [1, 1]}, "must increase"),
        ({"chunk_offsets": [1], "chunk_sizes": [1, 1]}, "1 `chunk_offsets` and 2 `chunk_sizes`"),
        ({"chunk_offsets": [2], "chunk_sizes": [4]}, "from byte 2 to 6"),
    ],
)
def test_errors(options, words):
    with pytest.raises(errors.HeadraceError, match=words):
        run_operator("decoders.inflate", np.uint8([1, 2, 3, 4, 5]), **{"shape": 42, **options})
    for wrong in (np.zeros(0, np.uint8), np.zeros((2, 2), np.uint8)):
        with pytest.raises(errors.HeadraceError, match=r"no bytes|one dimension"):
            run_operator("decoders.inflate", wrong, shape=4)
    with pytest.raises(errors.LayoutError, match="names 2 axes, but `shape` has 1"):
        ndd.decoders.inflate(lz4_block(b"q"), shape=[1], layout="HW").evaluate()
