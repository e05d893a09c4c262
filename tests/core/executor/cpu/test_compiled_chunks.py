"""Samples that go through all steps in one compiled loop: the bits, and the errors, of the other
way.
"""

from __future__ import annotations

import threading

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn, types
from headrace.errors import HeadraceError
from headrace.kernels.cpu import step_loops
from headrace.operators.support.compiled_steps import CompiledSteps
from tests.support.chunks import set_chunks
from tests.support.compiled import assert_equal_bits, without
from tests.support.speech import FOLDER, encode, encoded

_RANDOM = np.random.default_rng(3)
_KINDS = ("PCM_U8", "PCM_16", "PCM_24", "PCM_32", "FLOAT", "DOUBLE")
_FILES = [
    encode(_RANDOM.uniform(-1, 1, (size, channels)), 8000, "WAV", kind)
    for size, channels, kind in zip(
        (4000, 900, 2500, 1234, 700, 3333), (1, 2, 3, 1, 2, 1), _KINDS, strict=True
    )
]


def outputs_of(define, files=_FILES, batches=2, size=None, threads=1, **settings):
    """Samples of all outputs of a pipeline that reads these files again and again."""
    size = size or len(files)
    pipe = Pipeline(size, threads, None, seed=5, exec_dynamic=True, **settings)
    with pipe:
        data = fn.external_source(source=lambda: files[:size])
        made = define(data)
        pipe.set_outputs(*(made if isinstance(made, tuple) else (made,)))
    try:
        return [
            [np.array(output.at(k)) for output in pipe.run() for k in range(size)]
            for _ in range(batches)
        ]
    finally:
        pipe._shutdown()  # no chunk of it is to be counted by the next one


def mono(files, **settings):
    return fn.decoders.audio(files, downmix=True, **settings)[0]


def log_mel(audio, *, center=True, layout="ft", **decibels):
    spectrum = fn.spectrogram(
        audio, nfft=64, window_length=50, window_step=20, center_windows=center, layout=layout
    )
    mel = fn.mel_filter_bank(spectrum, sample_rate=8000.0, nfilter=20)
    return fn.to_decibels(mel, multiplier=10.0, **decibels)


def _tutorial(files):
    start = fn.random.uniform(range=[0.0, 0.5])
    clip = fn.slice(mono(files), rel_start=start, shape=[300], axes=[0])
    gain = fn.random.uniform(range=[0.5, 1.5])
    return fn.normalize(log_mel(clip * gain, cutoff_db=-80.0), axes=[0, 1])


def _by_columns(files):
    start = fn.cast(fn.random.uniform(range=[-50.0, 2000.0]), dtype=types.INT32)
    size = fn.cast(fn.random.uniform(range=[100.0, 1000.0], shape=[1]), dtype=types.INT32)
    policy = {"out_of_bounds_policy": "pad", "fill_values": 0.25}
    clip = fn.slice(mono(files), start=start, shape=size, axes=[0], **policy)
    return clip, fn.spectrogram(clip, nfft=63, window_length=40, window_step=15, power=1)


def _fractions(files):
    end = fn.random.uniform(range=[0.5, 1.0])
    audio, rates = fn.decoders.audio(files, downmix=True)
    clip = fn.slice(audio, rel_start=0.25, rel_end=end, axes=[0])
    return log_mel(clip, center=False, layout="tf", reference=2.0), rates, clip


def _expressions(files):
    audio = mono(files, sample_rate=8000.0)
    gain = fn.random.uniform(range=[-1.0, 1.0])
    louder = (audio * 2 - gain) / (audio + 1.5) + audio
    return louder, 1.0 / louder, fn.normalize(audio - gain, scale=2.0, shift=0.5, ddof=1)


def _channels(files):
    audio, rates = fn.decoders.audio(files)
    return fn.normalize(audio * 0.5, axes=[0], epsilon=1e-3), rates, audio


def _handed_on(files):
    """Outputs that an operator, with nothing to do, hands on as another output."""
    louder = mono(files) * 2
    same = fn.cast(louder, dtype=types.FLOAT)
    again = fn.cast_like(same, louder)
    return again, louder, same, fn.cast(louder + 1, dtype=types.FLOAT), again * 2


CHAINS = [_tutorial, _by_columns, _fractions, _expressions, _channels, _handed_on]


@pytest.mark.sweep
@pytest.mark.parametrize("define", CHAINS)
@pytest.mark.parametrize("chunks", ["1:1", "4:2", "8:8"])
def test_bits_are_those_of_the_other_way(define, chunks, carried, monkeypatch, tmp_path):
    set_chunks(chunks, monkeypatch.setattr)
    found = outputs_of(define, threads=2)
    assert carried
    assert all(carried)
    assert_equal_bits(found, outputs_of(define, profile=str(tmp_path / "profile.json")))
    assert all(carried)
    without(monkeypatch)
    assert_equal_bits(found, outputs_of(define))


def test_samples_of_one_shape_lie_side_by_side(carried):
    pipe = Pipeline(3, 1, None)
    with pipe:
        data = fn.external_source(source=lambda: [_FILES[1]] * 3)
        pipe.set_outputs(mono(data) * 0.5)
    output = pipe.run()[0]
    pipe._shutdown()
    assert carried == [True] * len(carried)
    assert output.is_dense_tensor()
    assert output.as_array().shape == (3, 900)


def _cut(files):
    return log_mel(fn.slice(mono(files), start=100, shape=[1000], axes=[0]))


BAD = {
    "a window leaves its signal": (_cut, _FILES[:3]),
    "a file is cut off": (_tutorial, [_FILES[0], _FILES[2][:-300]]),
    "a file is none": (_tutorial, [_FILES[0], np.zeros(80, np.uint8)]),
    "a signal is empty": (lambda files: log_mel(mono(files)), [_FILES[0], encode(np.zeros(0))]),
    "a signal is too short": (
        lambda files: log_mel(mono(files), center=False),
        [_FILES[0], encode(np.zeros(10))],
    ),
    "channels are not mixed": (lambda files: log_mel(fn.decoders.audio(files)[0]), _FILES[:2]),
    "shapes do not agree": (
        lambda files: mono(files) + fn.external_source(source=lambda: [np.ones(7, "f4")] * 2),
        _FILES[:2],
    ),
    "a window has no end": (
        lambda files: fn.slice(mono(files), start=10, end=5, axes=[0]),
        _FILES[:2],
    ),
    "a window is no number": (
        lambda files: fn.slice(
            mono(files), rel_start=fn.random.uniform(range=[0.0, 1.0]) / 0.0, rel_shape=1, axes=[0]
        ),
        _FILES[:2],
    ),
}


@pytest.mark.parametrize("case", BAD)
def test_errors_are_those_of_the_other_way(case, carried, monkeypatch):
    define, files = BAD[case]
    set_chunks("8:8", monkeypatch.setattr)
    with pytest.raises(HeadraceError) as error:
        outputs_of(define, files)
    assert carried
    assert not carried[0]
    without(monkeypatch)
    with pytest.raises(type(error.value)) as expected:
        outputs_of(define, files)
    # The lines of this test are not the same.
    first, second = (str(each.value).splitlines() for each in (error, expected))
    assert first[0] == second[0]
    assert [line for line in first if "sample" in line] == [x for x in second if "sample" in x]


def test_a_bad_file_is_replaced(carried, monkeypatch):
    set_chunks("8:8", monkeypatch.setattr)
    files = [_FILES[0], _FILES[1][:-300], _FILES[2]]
    found = outputs_of(_tutorial, files, on_bad_sample="replace")
    assert not carried[0]
    without(monkeypatch)
    assert_equal_bits(found, outputs_of(_tutorial, files, on_bad_sample="replace"))


def test_other_files_rest_the_compiled_loop(carried, monkeypatch):
    set_chunks("8:8", monkeypatch.setattr)
    files = [_FILES[0], encoded("mono_s16.flac")]
    found = outputs_of(_tutorial, files, batches=12)
    assert not any(carried)
    without(monkeypatch)
    assert_equal_bits(found, outputs_of(_tutorial, files, batches=12))


def test_plain_files_after_others_are_carried_again(carried, monkeypatch):
    set_chunks("8:8", monkeypatch.setattr)
    kinds = iter([[encoded("mono_s16.flac")] * 2] * 3 + [_FILES[:2]] * 40)
    pipe = Pipeline(2, 1, None, seed=5)
    with pipe:
        pipe.set_outputs(_tutorial(fn.external_source(source=lambda: next(kinds))))
    for _ in range(20):
        pipe.run()
    pipe._shutdown()
    assert not carried[0]
    assert carried[-1]


@pytest.mark.parametrize("size", [1 << 40, 1 << 60])
def test_what_is_too_large_is_left_to_the_other_way(size, carried, monkeypatch):
    def define(files):
        clip = fn.slice(mono(files), start=0, shape=[size], axes=[0], out_of_bounds_policy="pad")
        return log_mel(clip)

    with pytest.raises(HeadraceError, match="slice"):
        outputs_of(define, _FILES[:2])
    assert not any(carried)


UNKNOWN = {
    "another type": lambda files: fn.decoders.audio(files, dtype=types.INT16)[0],
    "another operation": lambda files: fn.normalize(mono(files) ** 2.0),
    "another operator": lambda files: fn.preemphasis_filter(mono(files)),
    "a rate by sample": lambda files: mono(files, sample_rate=fn.random.uniform(range=[8e3, 9e3])),
    "no fusion of axes": lambda files: fn.normalize(log_mel(mono(files)), mean=1.0),
}


@pytest.mark.parametrize("case", UNKNOWN)
def test_programs_without_instructions(case, carried):
    assert len(outputs_of(UNKNOWN[case])[0]) == len(_FILES)
    assert not carried


def test_moments_of_the_batch_are_for_the_other_way(carried, monkeypatch):
    """The stage in front of them is compiled."""

    def define(files):
        return fn.normalize(mono(files) * 0.5, batch=True)

    found = outputs_of(define)
    assert carried
    without(monkeypatch)
    assert_equal_bits(found, outputs_of(define))


def test_nothing_is_compiled_without_fusion(carried):
    outputs_of(_tutorial, fuse=False)
    assert not carried


def test_a_loop_of_dynamic_mode(carried, monkeypatch):
    """Batches of a loop that runs ahead, in two threads, with one `EvalContext` each."""
    files = [path.read_bytes() for path in sorted(FOLDER.glob("mono_s16.wav"))] * 5

    def loop(seed):
        rng = ndd.random.RNG(seed=seed)
        made = []
        with ndd.EvalContext(num_threads=1):
            for _ in range(6):
                batch = ndd.batch([np.frombuffer(data, np.uint8) for data in files])
                audio, _ = ndd.decoders.audio(batch, downmix=True)
                start = ndd.random.uniform(range=[0.0, 0.5], batch_size=5, rng=rng)
                clip = ndd.slice(audio, rel_start=start, shape=[200], axes=[0])
                spectrum = ndd.spectrogram(clip * 2.0, nfft=64, window_step=20, window_length=50)
                mel = ndd.mel_filter_bank(spectrum, sample_rate=8000.0, nfilter=20)
                made.append(ndd.normalize(ndd.to_decibels(mel)))
            return [[np.array(sample) for sample in batch.tensors] for batch in made]

    found = {}
    threads = [threading.Thread(target=lambda k=k: found.update({k: loop(k)})) for k in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert any(carried)
    without(monkeypatch)
    for seed in range(2):
        assert_equal_bits(found[seed], loop(seed))


def test_a_table_of_columns_tells_places_of_scratch_memory():
    steps = CompiledSteps()
    first, second = steps.samples(np.dtype(np.float32), 2), steps.samples(np.dtype(np.int16), 1)
    columns = np.zeros((steps.columns, 3), np.int64)
    columns[first.extents : first.extents + 2] = [[2, 3, 1], [5, 4, 9]]
    columns[second.extents] = [40, 0, 33]
    slots = np.array([[*first.words, 4], [*second.words, 2]], np.int64)
    instructions = np.zeros((0, step_loops.PARTS), np.int64)
    assert step_loops.plan_steps(instructions, columns, slots) == 64 + 128
    step_loops.place_slots(columns, slots, 1000)
    np.testing.assert_array_equal(columns[first.address], 1000)
    np.testing.assert_array_equal(columns[second.address], 1064)
    columns[second.extents, 1] = 1 << 61
    assert step_loops.plan_steps(instructions, columns, slots) == -1
