"""Spectra have the same bits whether operators know of one another or not, and in any batch."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn

MODES = ("eager", "sync_cpu", "deferred")


@st.composite
def chains(draw):
    """Operators on a signal, as a function of an edge; all draws are made here."""
    length = draw(st.integers(1, 80))
    nfft = length + draw(st.integers(0, 60))
    spectrogram = {
        "nfft": nfft,
        "window_length": length,
        "window_step": draw(st.integers(1, 90)),
        "power": draw(st.sampled_from([1, 2])),
        "reflect_padding": draw(st.booleans()),
        "layout": draw(st.sampled_from(["ft", "tf"])),
    }
    kinds = st.sampled_from(["mel", "decibels", "both", "mel twice", "after decibels", "none"])
    kind = draw(kinds)
    reference = draw(st.sampled_from([None, 1.0, 3.0]))
    bank = {
        "nfilter": draw(st.integers(1, 70)),
        "sample_rate": 16000.0,
        "mel_formula": draw(st.sampled_from(["slaney", "htk"])),
    }

    decibels = {"cutoff_db": -80.0} if reference is None else {"reference": reference}

    def chain(x, fn=fn):
        x = fn.spectrogram(x, **spectrogram)
        if kind in ("mel", "both", "mel twice"):
            x = fn.mel_filter_bank(x, **bank)
        if kind == "mel twice":
            x = fn.mel_filter_bank(x, nfilter=5)
        if kind in ("decibels", "both", "after decibels"):
            x = fn.to_decibels(x, **decibels)
        if kind == "after decibels":
            x = fn.to_decibels(fn.mel_filter_bank(x, **bank))
        return x

    return chain


def run(chain, signals, *, fuse: bool, threads: int) -> list[np.ndarray]:
    pipe = Pipeline(batch_size=len(signals), num_threads=threads, device_id=None, fuse=fuse)
    with pipe:
        x = fn.external_source(source=lambda: signals)
        out = chain(x)
        pipe.set_outputs(out, fn.normalize(out, epsilon=1e-3))
    pipe.build()
    return [np.array(batch.at(i)) for batch in pipe.run() for i in range(len(signals))]


@given(chains(), st.lists(st.integers(1, 3000), min_size=1, max_size=5), st.integers(0, 9))
def test_fusion_and_threads(chain, sizes, seed):
    rng = np.random.default_rng(seed)
    signals = [rng.standard_normal(size).astype(np.float32) for size in sizes]
    fused = run(chain, signals, fuse=True, threads=3)
    plain = run(chain, signals, fuse=False, threads=1)
    for got, expected in zip(fused, plain, strict=True):
        np.testing.assert_array_equal(got, expected)


@given(chains(), st.lists(st.integers(1, 3000), min_size=1, max_size=4), st.integers(0, 9))
def test_a_chain_whose_only_reader_is_the_next_operator(chain, sizes, seed):
    rng = np.random.default_rng(seed)
    signals = [rng.standard_normal(size).astype(np.float32) for size in sizes]

    def single(x):
        return fn.mfcc(chain(x), n_mfcc=7)

    found = [run(single, signals, fuse=fuse, threads=2) for fuse in (True, False)]
    for got, expected in zip(*found, strict=True):
        np.testing.assert_array_equal(got, expected)


@given(chains(), st.lists(st.integers(1, 3000), min_size=1, max_size=4), st.sampled_from(MODES))
def test_dynamic_mode(chain, sizes, mode):
    rng = np.random.default_rng(0)
    signals = [rng.standard_normal(size).astype(np.float32) for size in sizes]
    with getattr(ndd.EvalMode, mode):
        found = [np.asarray(t) for t in chain(ndd.as_batch(signals), ndd).tensors]
    expected = run(chain, signals, fuse=True, threads=1)
    for got, wanted in zip(found, expected[: len(signals)], strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_signals_whose_shapes_are_not_planned():
    """As those of random operators, which are known when they are there."""

    def outputs(fuse):
        pipe = Pipeline(batch_size=3, num_threads=2, device_id=None, seed=5, fuse=fuse)
        with pipe:
            signals = [fn.random.normal(shape=(4000,), seed=k) for k in range(2)]
            spectra = [fn.spectrogram(signal, nfft=512) for signal in signals]
            mel = fn.mel_filter_bank(spectra[1], sample_rate=16000.0, nfilter=20)
            pipe.set_outputs(fn.to_decibels(spectra[0]), fn.to_decibels(mel))
        pipe.build()
        return [output.as_array() for output in pipe.run()]

    for fused, alone in zip(outputs(True), outputs(False), strict=True):
        np.testing.assert_array_equal(fused, alone)
