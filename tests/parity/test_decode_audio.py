"""`fn.decoders.audio` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import LIBRARIES, assert_both_raise, assert_parity, run_graph
from tests.support.speech import CLIPS, WORDS, encode, encoded

# DALI is built without MP3, and its Vorbis and Opus decoders round differently by a bit.
FILES = [name for name in WORDS if not name.endswith(".mp3")]
TYPES = ("FLOAT", "INT16", "INT32")


def rng(seed=0):
    return np.random.default_rng(seed)


def noise(frames, channels=1, seed=0):
    return rng(seed).integers(-32768, 32768, (frames, channels)).astype(np.int16)


def tolerance(name):
    return {"max_levels": 1200, "differing": 1.0} if name.endswith(".ogg") else {"max_levels": 0}


@pytest.mark.parametrize("name", FILES)
def test_formats(name):
    assert_parity(
        lambda lib, x: tuple(
            output
            for dtype in TYPES
            for downmix in (False, True)
            for output in lib.fn.decoders.audio(x, dtype=getattr(lib.types, dtype), downmix=downmix)
        ),
        [encoded(name)],
        **(tolerance(name)),
        absolute=1e-6,
    )


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize(
    "name", ["stereo_s16.wav", "stereo_f32.wav", "mono_u8.wav", "mono_f64.wav"]
)
@pytest.mark.parametrize("dtype", TYPES)
@pytest.mark.parametrize("downmix", [False, True])
def test_resampling(name, dtype, downmix):
    def graph(lib, x):
        audio = (
            lib.fn.decoders.audio(
                x, dtype=getattr(lib.types, dtype), downmix=downmix, sample_rate=rate, quality=q
            )
            for rate, q in ((8000, 50), (16000, 50), (11025, 0), (4000, 30.5), (7999.5, 100))
        )
        return tuple(output for pair in audio for output in pair)

    assert_parity(graph, [encoded(name)], max_levels=1 if dtype == "INT16" else 20000, differing=1)


@pytest.mark.sweep
@pytest.mark.parametrize("channels", [1, 2, 3, 5, 8])
@pytest.mark.parametrize("dtype", TYPES)
def test_channels(channels, dtype):
    def graph(lib, x):
        arguments = {"dtype": getattr(lib.types, dtype)}
        return (
            *lib.fn.decoders.audio(x, **arguments),
            *lib.fn.decoders.audio(x, downmix=True, **arguments),
            *lib.fn.decoders.audio(x, downmix=True, sample_rate=6000, **arguments),
        )

    levels = 1 if dtype == "INT16" else 20000
    data = [encode(noise(n, channels, n)) for n in (1, 2, 37, 1000)]
    assert_parity(graph, data, max_levels=levels, differing=1)


def test_ragged_batches_and_rates_for_each_sample():
    data = [encode(noise(n, 1, n), rate) for n, rate in ((100, 8000), (999, 16000), (5, 44100))]
    for rates in ([8000, 16000, 8000], [0, 16000, 22050], [12345.5, -1, 1]):
        feeds = [np.float32(r) for r in rates]
        assert_parity(lambda lib, x, r: lib.fn.decoders.audio(x, sample_rate=r), data, feeds)
        assert_parity(
            lambda lib, x, r: lib.fn.decoders.audio(x, sample_rate=r, downmix=True),
            data,
            [f.reshape(1) for f in feeds],
        )


def test_speech():
    data = [encoded(name) for name in CLIPS]
    assert_parity(
        lambda lib, x: lib.fn.decoders.audio(x, downmix=True, sample_rate=8000), data, absolute=1e-5
    )


def test_files_without_samples():
    for channels in (1, 2):
        data = [encode(noise(0, channels))]
        assert_parity(
            lambda lib, x: (
                *lib.fn.decoders.audio(x),
                *lib.fn.decoders.audio(x, downmix=True),
                *lib.fn.decoders.audio(x, sample_rate=16000),
            ),
            data,
        )


def test_loudness_beyond_the_range():
    loud = np.array([0, 1, -1, 1.5, -1.5, 2.5, -3, 0.5, -0.5, 40000, -3e9, np.nan], np.float32)
    data = [encode(loud, subtype="FLOAT"), encode(np.stack([loud, loud], 1), subtype="FLOAT")]
    for dtype in TYPES:
        for downmix in (False, True):
            for k in (0, 1):
                if k and downmix and dtype != "FLOAT":
                    # What becomes of a mixed not-a-number is the processor's choice.
                    clip = [encode(np.stack([loud, loud], 1)[:-1], subtype="FLOAT")]
                else:
                    clip = data[k : k + 1]
                run = [
                    run_graph(
                        library,
                        lambda lib, x, dtype=dtype, downmix=downmix: lib.fn.decoders.audio(
                            x, dtype=getattr(lib.types, dtype), downmix=downmix
                        )[0],
                        clip,
                    )[0][0].samples[0]
                    for library in LIBRARIES
                ]
                np.testing.assert_array_equal(*run)


def chunk(name, body):
    return name + len(body).to_bytes(4, "little") + body + b"\0" * (len(body) % 2)


def wave(*chunks):
    body = b"WAVE" + b"".join(chunks)
    return np.frombuffer(b"RIFF" + len(body).to_bytes(4, "little") + body, np.uint8)


def format_chunk(kind=1, channels=1, rate=8000, bits=16, extra=b""):
    block = channels * bits // 8
    numbers = ((kind, 2), (channels, 2), (rate, 4), (rate * block, 4), (block, 2), (bits, 2))
    return chunk(b"fmt ", b"".join(n.to_bytes(size, "little") for n, size in numbers) + extra)


SAMPLES = np.arange(-500, 500, dtype="<i2").tobytes()
WAVES = {
    "plain": wave(format_chunk(), chunk(b"data", SAMPLES)),
    "chunks before": wave(chunk(b"JUNK", b"123"), format_chunk(), chunk(b"data", SAMPLES)),
    "list between": wave(format_chunk(), chunk(b"LIST", b"INFOabc"), chunk(b"data", SAMPLES)),
    "odd data": wave(format_chunk(bits=8), chunk(b"data", SAMPLES[:501])),
    "list behind": wave(format_chunk(), chunk(b"data", SAMPLES), chunk(b"LIST", b"INFOabc")),
    "longer format": wave(format_chunk(extra=b"\0\0"), chunk(b"data", SAMPLES)),
    "part of a frame": wave(format_chunk(channels=2), chunk(b"data", SAMPLES[:1002])),
    "24 bits": wave(format_chunk(bits=24), chunk(b"data", SAMPLES[:1200])),
    "unaligned": wave(
        format_chunk(kind=3, bits=32, extra=b"\0\0"),
        chunk(b"data", np.linspace(-1, 1, 99, dtype="<f4").tobytes()),
    ),
    "trailing bytes": np.concatenate(
        [wave(format_chunk(), chunk(b"data", SAMPLES)), np.zeros(100, np.uint8)]
    ),
    "streamed": wave(format_chunk(), b"data\xff\xff\xff\xff" + SAMPLES),
    "size of zero": wave(format_chunk(), b"data\0\0\0\0" + SAMPLES),
}


@pytest.mark.parametrize("name", WAVES)
def test_headers(name):
    assert_parity(lambda lib, x: lib.fn.decoders.audio(x), [WAVES[name]], max_levels=0)


@pytest.mark.parametrize(
    ("name", "data"),
    {
        "empty": np.zeros(0, np.uint8),
        "nothing known": np.arange(200, dtype=np.uint8),
        "text": np.frombuffer(b"hello, this is no audio at all", np.uint8),
        "start only": WAVES["plain"][:20],
        "flac start": encoded("mono_s16.flac")[:30],
        "flac half": encoded("river.flac")[:20000],
        "ogg start": encoded("ferry.ogg")[:100],
    }.items(),
    ids=lambda v: v if isinstance(v, str) else "",
)
def test_bad_files(name, data):
    message = assert_both_raise(lambda lib, x: lib.fn.decoders.audio(x), [data])
    assert "decoders.audio" in message


@pytest.mark.parametrize("dtype", ["UINT8", "INT8", "UINT16", "FLOAT16", "FLOAT64", "BOOL"])
def test_types_that_there_are_not(dtype):
    assert_both_raise(
        lambda lib, x: lib.fn.decoders.audio(x, dtype=getattr(lib.types, dtype)),
        [WAVES["plain"]],
        match="INT16",
    )


@pytest.mark.parametrize("quality", [-1, 100.5, float("nan")])
def test_quality_out_of_range(quality):
    assert_both_raise(
        lambda lib, x: lib.fn.decoders.audio(x, quality=quality, sample_rate=4000),
        [WAVES["plain"]],
        match="quality",
    )
    # DALI looks at it only where it resamples.
    with pytest.raises(ValueError, match="quality"):
        run_graph(
            "headrace", lambda lib, x: lib.fn.decoders.audio(x, quality=quality), [WAVES["plain"]]
        )


def test_rates():
    data = [WAVES["plain"]]
    assert_parity(
        lambda lib, x: tuple(
            output
            for rate in (0, -5, 1e-3, 4000.1, 8000, 1e6)
            for output in lib.fn.decoders.audio(x, sample_rate=rate)
        ),
        data,
        absolute=2e-5,
    )
    for rate in (float("inf"), 1e20):
        assert_both_raise(
            lambda lib, x, rate=rate: lib.fn.decoders.audio(x, sample_rate=rate),
            data,
            match="sample_rate",
        )


def test_data_that_cannot_be_a_file():
    plain = WAVES["plain"][:2000]
    for data in (plain.view(np.int8), plain.reshape(-1, 2)):
        assert_both_raise(lambda lib, x: lib.fn.decoders.audio(x), [data])


def test_a_wave_file_that_is_cut_off_is_an_error_in_headrace_only():
    data = [encode(noise(100, 2))[:200]]
    found = run_graph("dali", lambda lib, x: lib.fn.decoders.audio(x), data)
    assert found[0][0].samples[0].shape == (39, 2)
    with pytest.raises(Exception, match="cut off"):
        run_graph("headrace", lambda lib, x: lib.fn.decoders.audio(x), data)


def test_streams_end_where_they_end():
    # Ogg does not say how long it is; what is there is decoded.
    assert_parity(
        lambda lib, x: lib.fn.decoders.audio(x),
        [encoded("ferry.ogg")[:9000]],
        absolute=1e-5,
    )


@pytest.mark.parametrize("name", ["mono_layer3.mp3", "stereo_layer3.mp3"])
def test_only_headrace_has_mp3(name):
    def graph(lib, x):
        return lib.fn.decoders.audio(x)

    with pytest.raises(RuntimeError):
        run_graph("dali", graph, [encoded(name)])
    samples = run_graph("headrace", graph, [encoded(name)])[0][0].samples[0]
    assert samples.shape[1] == (1 if "mono" in name else 2)
    assert np.abs(samples).max() > 0.1
