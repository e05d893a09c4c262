"""Audio files in memory: plain WAV files by our own loops, all others by libsndfile."""

from __future__ import annotations

import contextlib
import struct

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import BadSampleError
from headrace.kernels.cpu.audio.clip import Clip
from headrace.kernels.cpu.audio.wave_header import read_wave_header
from tests.support.speech import CLIPS, WORDS, decoded, encode, encoded

OWN = ("_u8.wav", "_s16.wav", "_s24.wav", "_s32.wav", "_f32.wav", "_f64.wav", "_extensible.wav")


def read(data, dtype="float32", first=0, frames=None, mixed=False):
    with Clip(data) as clip:
        frames = clip.frames - first if frames is None else frames
        shape = (frames,) if mixed else (frames, clip.channels)
        out = np.full(shape, 77, dtype)
        clip.read(out, np.empty, first, mixed=mixed)
        return out


@pytest.mark.sweep
@pytest.mark.parametrize("name", WORDS)
@pytest.mark.parametrize("dtype", ["float32", "int16", "int32"])
def test_samples_are_those_of_libsndfile(name, dtype):
    data = encoded(name)
    # soundfile lets libsndfile read MP3 in other pieces, which rounds differently.
    levels = {"float32": 1e-7, "int16": 1, "int32": 256}[dtype] if name.endswith(".mp3") else 0
    np.testing.assert_allclose(read(data, dtype), decoded(data, dtype), rtol=0, atol=levels)


@pytest.mark.parametrize("name", WORDS)
def test_our_own_loops_take_what_they_should(name):
    assert (read_wave_header(encoded(name)) is not None) == name.endswith(OWN)


@pytest.mark.parametrize("name", ["stereo_s16.wav", "stereo_f64.wav", "stereo_s24.flac"])
def test_mixing(name):
    data = encoded(name)
    expected = decoded(data).mean(axis=1, dtype=np.float32)
    np.testing.assert_allclose(read(data, mixed=True), expected, atol=1e-7)
    scaled = read(data, "int16", mixed=True)
    assert np.abs(scaled - expected * 32767).max() <= 0.51


@pytest.mark.parametrize("name", ["stereo_s24.wav", "mono_s16.flac", "stereo_ulaw.wav"])
@pytest.mark.parametrize("mixed", [False, True])
def test_parts(name, mixed):
    data = encoded(name)
    whole = read(data, mixed=mixed)
    for first, frames in ((0, 10), (100, 7), (1599, 1), (5, 0)):
        part = read(data, first=first, frames=frames, mixed=mixed)
        np.testing.assert_array_equal(part, whole[first : first + frames])


def test_data_at_odd_addresses():
    data = encoded("stereo_f32.wav")
    shifted = np.empty(data.size + 1, np.uint8)[1:]
    shifted[:] = data
    np.testing.assert_array_equal(read(shifted), read(data))


@pytest.mark.parametrize("bits", [8, 16, 24, 32])
def test_extremes_of_integers(bits):
    ends = np.array([-(2**31), 2**31 - 1, 0, -1, 1 << 30], np.int32)
    data = encode(ends, subtype="PCM_U8" if bits == 8 else f"PCM_{bits}")
    for dtype in ("float32", "int16", "int32"):
        np.testing.assert_array_equal(read(data, dtype), decoded(data, dtype))


@pytest.mark.parametrize("channels", [1, 2, 3, 7])
def test_many_channels(channels):
    samples = np.random.default_rng(0).integers(-32768, 32768, (50, channels)).astype(np.int16)
    data = encode(samples)
    np.testing.assert_array_equal(read(data, "int16"), samples)


def test_what_is_said_of_bad_files():
    for data, word in (
        (np.zeros(0, np.uint8), "empty"),
        (np.arange(99, dtype=np.uint8), "no audio file"),
        (encoded("mono_s16.wav")[:400], "cut off: its header announces 3200 bytes"),
        (encoded("signal.flac")[:20000], "damaged"),
    ):
        with pytest.raises(BadSampleError, match=word):
            read(data)


def test_headers_that_announce_too_much():
    data = encoded("mono_s16.flac").copy()
    data[21:26] = 0xFF  # 2**36 samples
    with pytest.raises(BadSampleError, match="announces"):
        read(data)


@pytest.mark.parametrize(
    "name", [*CLIPS, "stereo_s16.wav", "mono_s24.wav", "stereo_opus.ogg", "mono_layer3.mp3"]
)
def test_damaged_files_are_read_or_refused(name):
    for seed in range(15):
        rng = np.random.default_rng(seed)
        data = encoded(name).copy()
        for _ in range(int(rng.integers(1, 20))):
            end = data.size if rng.random() < 0.5 else min(data.size, 200)
            at = int(rng.integers(0, end))
            if rng.random() < 0.8:
                data[at] = rng.integers(0, 256)
            else:
                data = np.delete(data, slice(at, at + int(rng.integers(1, 50))))
        with contextlib.suppress(BadSampleError):
            assert read(data).dtype == np.float32


@pytest.mark.parametrize("name", ["mono_s16.wav", "mono_s16.flac", "mono_vorbis.ogg"])
def test_files_cut_off_anywhere_are_read_or_refused(name):
    data = encoded(name)
    for size in [*range(120), *range(120, data.size, 97)]:
        try:
            samples = read(data[:size])
        except BadSampleError:
            continue
        assert len(samples) <= 1600


def test_damaged_wave_headers():
    for seed in range(300):
        rng = np.random.default_rng(seed)
        data = encoded("stereo_extensible.wav" if seed % 2 else "mono_s24.wav").copy()
        for _ in range(int(rng.integers(1, 5))):
            values = [0, 1, 2, 0x7F, 0x80, 0xFF, rng.integers(256)]
            data[int(rng.integers(0, 80))] = rng.choice(values)
        with contextlib.suppress(BadSampleError):
            read(data[: int(rng.integers(40, data.size))] if rng.random() < 0.3 else data)


def chunk(name, data, size=None):
    size = len(data) if size is None else size
    return name + size.to_bytes(4, "little") + data + bytes(len(data) % 2)


@given(st.data())
def test_chunks_in_any_order_and_sizes_of_streams(data):
    kind, bits = data.draw(st.sampled_from([(1, 8), (1, 16), (1, 24), (1, 32), (3, 32), (3, 64)]))
    channels, rate = data.draw(st.integers(1, 9)), data.draw(st.sampled_from([1, 8000, 192_000]))
    rng = np.random.default_rng(data.draw(st.integers(0, 99)))
    count = channels * data.draw(st.integers(0, 30))
    raw = rng.bytes(count * bits // 8)
    if kind == 3:
        raw = rng.uniform(-1, 1, count).astype(f"<f{bits // 8}").tobytes()
    block = channels * bits // 8
    extensible = data.draw(st.booleans())
    head = struct.pack(
        "<HHIIHH", 0xFFFE if extensible else kind, channels, rate, rate * block, block, bits
    )
    if extensible:
        fixed = bytes.fromhex("000000001000800000aa00389b71")
        head += struct.pack("<HHIH", 22, bits, 0, kind) + fixed
    others = st.lists(
        st.tuples(st.sampled_from([b"LIST", b"JUNK", b"id3 "]), st.binary(max_size=9)), max_size=3
    )
    size = data.draw(st.sampled_from([len(raw), 0, 0xFFFFFFFF]))
    parts = [*data.draw(others), (b"fmt ", head), *data.draw(others)]
    body = b"WAVE" + b"".join(chunk(*part) for part in parts) + chunk(b"data", raw, size)
    if size == len(raw):
        body += b"".join(chunk(*part) for part in data.draw(others))
    elif size and len(raw) % 2:
        body = body[:-1]
    riff = data.draw(st.sampled_from([len(body), 0, 0xFFFFFFFF]))
    file = np.frombuffer(b"RIFF" + riff.to_bytes(4, "little") + body, np.uint8)
    assert read_wave_header(file) is not None
    for dtype in ("float32", "int16", "int32"):
        np.testing.assert_array_equal(read(file, dtype), decoded(file, dtype))


def test_an_ogg_file_does_not_lose_its_samples_silently():
    data = encoded("mono_vorbis.ogg").copy()
    data[-5] ^= 1  # in the page of the samples, whose check sum is wrong then
    assert decoded(data).size == 0
    with pytest.raises(BadSampleError, match="damaged"):
        read(data)
