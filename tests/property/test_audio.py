"""What must hold for any audio: it is read as by libsndfile; modes and threads change nothing."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import assume, given, settings

import headrace.experimental.dynamic as ndd
from headrace import fn, pipeline_def, types
from headrace.errors import BadSampleError
from headrace.kernels.cpu.audio.clip import Clip
from tests.support.speech import decoded, encode

SUBTYPES = ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE")


@st.composite
def signals(draw, most=400):
    """Loudness, ``(frames, channels)``."""
    frames, channels = draw(st.integers(0, most)), draw(st.integers(1, 4))
    random = np.random.default_rng(draw(st.integers(0, 2**32 - 1)))
    return random.uniform(-1, 1, (frames, channels))


def read(data, dtype="float32", mixed=False):
    with Clip(data) as clip:
        out = np.empty((clip.frames,) if mixed else (clip.frames, clip.channels), dtype)
        clip.read(out, np.empty, mixed=mixed)
        return out


@given(
    signals(),
    st.sampled_from(SUBTYPES),
    st.sampled_from(["WAV", "WAVEX"]),
    st.sampled_from(["float32", "int16", "int32"]),
    st.integers(1, 200000),
)
def test_wave_files_are_read_as_by_libsndfile(signal, subtype, kind, dtype, rate):
    data = encode(signal, rate, kind, subtype)
    np.testing.assert_array_equal(read(data, dtype), decoded(data, dtype))
    mean = decoded(data).mean(axis=1)
    np.testing.assert_allclose(read(data, mixed=True), mean, atol=1e-6)


@given(
    st.lists(
        st.tuples(
            st.sampled_from([b"JUNK", b"LIST", b"fact", b"bext", b"cue "]), st.binary(max_size=40)
        ),
        max_size=4,
    ),
    st.integers(0, 60),
)
def test_chunks_of_other_kinds_are_passed_over(chunks, cut):
    plain = encode(np.linspace(-1, 1, 50)).tobytes()
    head, body = plain[12:36], plain[36:]
    between = b"".join(
        name + len(text).to_bytes(4, "little") + text + b"\0" * (len(text) % 2)
        for name, text in chunks
    )
    whole = b"WAVE" + between + head + between + body
    file = b"RIFF" + len(whole).to_bytes(4, "little") + whole
    data = np.frombuffer(file, np.uint8)
    np.testing.assert_array_equal(read(data), decoded(np.frombuffer(plain, np.uint8)))
    if cut:
        with pytest.raises(BadSampleError):
            read(data[:-cut])


@given(
    st.binary(max_size=300),
    st.sampled_from(["", "RIFF", "RIFF....WAVE", "fLaC", "OggS", "ID3", "FORM....AIFF"]),
)
def test_anything_is_read_or_refused(content, magic):
    data = np.frombuffer(magic.encode() + content, np.uint8)
    try:
        samples = read(data)
    except BadSampleError:
        return
    assert samples.ndim == 2


@st.composite
def steps(draw):
    """Operators on a signal of one channel, with arguments; first names, then arguments."""
    chosen = []
    for _ in range(draw(st.integers(1, 3))):
        name = draw(st.sampled_from(["resample", "length", "preemphasis", "slice", "trim"]))
        if name == "resample":
            more = {"scale": draw(st.floats(0.3, 3)), "quality": draw(st.floats(0, 100))}
            chosen.append(("audio_resample", more))
        elif name == "length":
            chosen.append(("audio_resample", {"out_length": draw(st.integers(1, 700))}))
        elif name == "preemphasis":
            border = draw(st.sampled_from(["clamp", "zero", "reflect"]))
            more = {"preemph_coeff": draw(st.floats(-2, 2)), "border": border}
            chosen.append(("preemphasis_filter", more))
        else:
            more = {"rel_start": [draw(st.floats(0, 1))], "shape": [draw(st.integers(1, 300))]}
            policy = "pad" if name == "slice" else "trim_to_shape"
            chosen.append(("slice", more | {"axes": [0], "out_of_bounds_policy": policy}))
    return chosen


def as_pipeline(files, chain, downmix_rate, **options):
    @pipeline_def(batch_size=len(files), device_id=None, **options)
    def pipeline():
        encoded = fn.external_source(source=lambda: files)
        audio, _ = fn.decoders.audio(encoded, downmix=True, sample_rate=downmix_rate)
        for name, arguments in chain:
            audio = getattr(fn, name)(audio, **arguments)
        return (audio, *fn.nonsilent_region(audio, window_length=32, reset_interval=64))

    return [np.asarray(t.at(k)) for t in pipeline().run() for k in range(len(files))]


@settings(max_examples=15, deadline=None)
@given(st.lists(signals(), min_size=1, max_size=4), steps(), st.sampled_from([0, 6000, 11025]))
def test_modes_and_threads_change_nothing(clips, chain, rate):
    assume(all(len(clip) for clip in clips))
    files = [encode(clip) for clip in clips]
    trimmed = any(a.get("out_of_bounds_policy") == "trim_to_shape" for _, a in chain)
    assume(not trimmed or not any("out_length" in a for _, a in chain))
    expected = as_pipeline(files, chain, rate, num_threads=1)
    for options in ({"num_threads": 3}, {"num_threads": 2, "fuse": False}):
        found = as_pipeline(files, chain, rate, **options)
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)
    for mode in (ndd.EvalMode.eager, ndd.EvalMode.sync_cpu):
        with mode:
            audio, _ = ndd.decoders.audio(ndd.as_batch(files), downmix=True, sample_rate=rate)
            for name, arguments in chain:
                audio = getattr(ndd, name)(audio, **arguments)
            ends = ndd.nonsilent_region(audio, window_length=32, reset_interval=64)
            found = [np.asarray(t) for batch in (audio, *ends) for t in batch.tensors]
        for got, wanted in zip(found, expected, strict=True):
            np.testing.assert_array_equal(got, wanted)


@given(
    signals(most=200),
    st.sampled_from([types.UINT8, types.INT8, types.UINT16, types.INT16, types.FLOAT]),
    st.floats(0.2, 4),
)
@settings(max_examples=20, deadline=None)
def test_resampling_stays_near_the_signal(signal, dtype, scale):
    """A constant stays a constant, but at its ends."""
    level = float(signal[0, 0]) if len(signal) else 0.25
    data = np.full(300, level, np.float32)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline():
        audio = fn.external_source(source=lambda: [data])
        return fn.audio_resample(fn.audio_resample(audio, scale=scale), scale=1, dtype=dtype)

    found = np.asarray(pipeline().run()[0].at(0)).astype(np.float64)
    margin = int(20 * max(scale, 1))
    middle = found[margin:-margin]
    kind = np.dtype({types.FLOAT: "f4"}.get(dtype, dtype.name.lower()))
    if kind.kind != "f":
        top = np.iinfo(kind).max
        middle = middle / top if kind.kind == "i" else middle / top * 2 - 1
    if len(middle):
        assert np.abs(middle - level).max() < 0.02
