"""Spectra without a pipeline: what comes out, and what errors say."""

from __future__ import annotations

from types import SimpleNamespace

import numpy as np
import pytest

from headrace.errors import ArgumentValueError, LayoutError, ShapeError
from headrace.operators.support.audio.lazy_spectrum import LazySpectrum, numbers
from headrace.operators.support.registry import find
from headrace.operators.support.schema import Spec
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType
from tests.support.run_operator import run_operator

TONE = np.sin(2 * np.pi * 1000 / 16000 * np.arange(16000)).astype(np.float32)


def prepared(name: str, ndim: int, layout: str = "", **arguments):
    schema = find(name)
    op = schema.cls({a.name: a.default for a in schema.args.values()} | arguments, {})
    op.infer(Spec(DALIDataType.FLOAT, ndim, layout))
    return op


def test_a_tone_is_where_it_belongs():
    powers = run_operator("spectrogram", TONE)
    assert powers.shape == (257, 63)
    # A sine that is mirrored at its beginning is no sine there.
    assert (powers[:, 1:-1].argmax(axis=0) == 1000 * 512 // 16000).all()


def test_parseval():
    powers = run_operator("spectrogram", TONE, window_fn=[1.0] * 512, center_windows=False)
    energy = powers[0] + powers[-1] + 2 * powers[1:-1].sum(axis=0)
    expected = [np.square(TONE[i * 256 : i * 256 + 512]).sum() * 512 for i in range(len(energy))]
    np.testing.assert_allclose(energy, expected, rtol=1e-5)


def test_layout_of_the_output():
    op = prepared("spectrogram", 1)
    assert op.infer(Spec(DALIDataType.FLOAT, 1)) == Spec(DALIDataType.FLOAT, 2, "ft")


def test_lazy_spectra_are_added_to_and_computed():
    signal, filters = prepared("spectrogram", 1), prepared("mel_filter_bank", 2, "ft")
    context = SimpleNamespace(table=([63],), temp=np.empty)
    lazily = signal.cpu_chunk(context, Rows([TONE]))
    assert lazily.shapes.tolist() == [[257, 63]]
    longer = filters.cpu_chunk(context, lazily)
    assert isinstance(longer, LazySpectrum)
    assert longer.shapes.tolist() == [[128, 63]]
    assert longer.subset([0]).shapes.tolist() == [[128, 63]]
    plain = run_operator("mel_filter_bank", run_operator("spectrogram", TONE), layout="ft")
    np.testing.assert_array_equal(numbers(context, longer)[0], plain)
    np.testing.assert_array_equal(numbers(context, longer.subset([0]))[0], plain)
    rows = Rows([plain])
    assert numbers(context, rows) is rows


def test_memory_for_a_spectrogram_is_taken_once_it_is_known_to_be_right():
    with pytest.raises(ShapeError, match=r"empty: its shape is \(0,\)"):
        run_operator("spectrogram", TONE[:0])
    with pytest.raises(ShapeError, match=r"the shape \(8000, 2\); expected a single axis"):
        run_operator("spectrogram", TONE.reshape(8000, 2))
    with pytest.raises(ShapeError, match=r"A signal of 256 elements .* at least 257 with"):
        run_operator("spectrogram", TONE[:256], center_windows=False)


def test_arguments_that_do_not_go_together():
    with pytest.raises(
        ArgumentValueError, match=r"`nfft` is 511; .* `window_length`, which is 512"
    ):
        run_operator("spectrogram", TONE, nfft=511)
    with pytest.raises(ArgumentValueError, match=r"`window_fn` has 3 weights; .* which is 512"):
        run_operator("spectrogram", TONE, window_fn=[1, 2, 3])
    with pytest.raises(ArgumentValueError, match=r"`freq_high` is 9000.0; .* 8000.0"):
        run_operator("mel_filter_bank", np.ones((9, 2), np.float32), freq_high=9e3, sample_rate=8e3)
    with pytest.raises(ArgumentValueError, match="`sample_rate` is nan"):
        run_operator("mel_filter_bank", np.ones((9, 2), np.float32), sample_rate=np.nan)
    with pytest.raises(LayoutError, match='"tc", which has no axis "f"'):
        run_operator("mel_filter_bank", np.ones((9, 2), np.float32), layout="tc")


def test_the_filters_know_the_frequencies_by_the_extent():
    powers = np.zeros((513, 1), np.float32)
    powers[64] = 1  # 1 kHz of a transform of 1024 elements at 16 kHz
    wide = run_operator("mel_filter_bank", powers, sample_rate=16000, layout="ft", nfilter=40)
    narrow = run_operator(
        "mel_filter_bank", powers[::2], sample_rate=16000, layout="ft", nfilter=40
    )
    np.testing.assert_allclose(wide, narrow, rtol=1e-5)


def test_decibels_of_nothing():
    found = run_operator("to_decibels", np.zeros((3, 4), np.float32), cutoff_db=-80)
    np.testing.assert_allclose(found, -80, rtol=1e-6)


def test_an_orthonormal_transform_keeps_lengths():
    data = np.random.default_rng(0).standard_normal((40, 5)).astype(np.float32)
    for kind in (2, 3, 4):
        found = run_operator("mfcc", data, dct_type=kind, n_mfcc=40, normalize=True)
        np.testing.assert_allclose(
            np.linalg.norm(found, axis=0), np.linalg.norm(data, axis=0), rtol=1e-5
        )
