"""Spectra on the GPU have the bits that they have on the CPU."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn
from headrace.kernels.cpu.bands import mel_bands
from headrace.kernels.cpu.spectrogram import Framing, SpectrumPlan, hann_window
from headrace.kernels.gpu import spectrogram as kernels
from headrace.operators.support.audio.spectrum_batch import SpectrumBatch
from headrace.tensors.rows import Rows
from tests.support.gpu.alike import check_alike, check_same_error
from tests.support.gpu.session import gpu_session

RNG = np.random.default_rng(5)


def signals(*sizes: int) -> list[np.ndarray]:
    return [RNG.standard_normal(n).astype(np.float32) for n in sizes]


def noise(*shapes: tuple[int, ...]) -> list[np.ndarray]:
    return [RNG.random(shape).astype(np.float32) for shape in shapes]


def outputs(graph: Callable[[Any], Any], feed: list[np.ndarray], device: str, **options: Any):
    """Samples of all outputs of `graph` on a device."""
    pipe = Pipeline(
        batch_size=len(feed), num_threads=2, device_id=0 if device == "gpu" else None, **options
    )
    with pipe:
        data = fn.external_source(source=lambda: feed)
        found = graph(data.gpu() if device == "gpu" else data)
        pipe.set_outputs(*(found if isinstance(found, tuple) else (found,)))
    pipe.build()
    batches = [out.as_cpu() if device == "gpu" else out for out in pipe.run()]
    return [np.array(batch.at(i)) for batch in batches for i in range(len(feed))]


def alike(graph: Callable[[Any], Any], feed: list[np.ndarray], **tolerance: float) -> None:
    """Check that a graph has the same outputs on both devices, and without fusion."""
    expected = outputs(graph, feed, "cpu")
    fused, plain = (outputs(graph, feed, "gpu", fuse=fuse) for fuse in (True, False))
    for index, (got, other, wanted) in enumerate(zip(fused, plain, expected, strict=True)):
        np.testing.assert_array_equal(got, other, f"sample {index}, fused and not")
        assert got.dtype == wanted.dtype
        if tolerance:
            limits = {**tolerance, "atol": tolerance["atol"] * np.abs(wanted).max()}
            np.testing.assert_allclose(got, wanted, **limits)
        else:
            np.testing.assert_array_equal(got, wanted, f"sample {index}")


LENGTHS = [
    (64, 64, 16),
    (64, 50, 20),
    (128, 128, 500),
    (15, 15, 4),
    (60, 60, 25),
    (122, 100, 50),
    (77, 70, 30),
    (3, 3, 1),
    (4, 2, 2),
    (2, 2, 3),
    (1, 1, 2),
]


@pytest.mark.sweep
@pytest.mark.parametrize(("nfft", "length", "step"), LENGTHS)
@pytest.mark.parametrize("layout", ["ft", "tf"])
def test_lengths(nfft, length, step, layout):
    def graph(x):
        return fn.spectrogram(x, nfft=nfft, window_length=length, window_step=step, layout=layout)

    alike(graph, signals(1, 40, 301, 500))


@pytest.mark.parametrize("nfft", [67, 134])
@pytest.mark.parametrize("layout", ["ft", "tf"])
def test_lengths_with_large_prime_factors(nfft, layout):
    """The CPU leaves them to SciPy, the GPU goes by the definition."""

    def graph(x):
        return fn.spectrogram(x, window_length=nfft, window_step=30, layout=layout)

    alike(graph, signals(20, 301), rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("reflect", [True, False])
@pytest.mark.parametrize("power", [1, 2])
def test_windows(center, reflect, power):
    arguments = {"center_windows": center, "reflect_padding": reflect, "power": power}
    window = RNG.standard_normal(40).astype(np.float32).tolist()
    sizes = (1, 2, 39, 90, 400) if center else (31, 40, 90, 400)
    data = signals(*sizes)
    check_alike("spectrogram", data, window_length=40, window_step=10, **arguments)
    check_alike(
        "spectrogram",
        data,
        window_length=40,
        window_step=10,
        nfft=60,
        window_fn=window,
        **arguments,
    )


@pytest.mark.parametrize("lanes", [1, 2, 4, 8, 16])
@pytest.mark.parametrize("nfft", [48, 45])
def test_all_numbers_of_frames_a_block_may_take(lanes, nfft, monkeypatch):
    monkeypatch.setattr(kernels, "_LANES", (lanes,))

    def graph(x):
        powers = fn.spectrogram(x, window_length=nfft, window_step=7)
        return powers, fn.mel_filter_bank(powers, nfilter=20)

    alike(graph, signals(5, 300, 120))


@pytest.mark.parametrize("nfft", [48, 45])
def test_transforms_that_are_too_long_for_shared_memory(nfft, monkeypatch):
    monkeypatch.setattr(kernels, "_SHARED_BYTES", 0)
    monkeypatch.setattr(kernels, "_MOST_SCRATCH_BYTES", 20_000)

    def graph(x):
        return fn.spectrogram(x, window_length=nfft, window_step=7)

    alike(graph, signals(5, 300, 120, 700))


@pytest.mark.parametrize("shape", [(300, 1), (1, 300), (1, 300, 1), (1, 1)])
def test_axes_of_one_element(shape):
    check_alike("spectrogram", noise(shape, shape), window_length=40, window_step=10)


def test_wrong_signals():
    check_same_error("spectrogram", noise((100,), (0,)), sample=1)
    check_same_error("spectrogram", noise((100, 1), (100, 2)), sample=1)
    arguments = {"window_length": 50, "window_step": 10, "center_windows": False}
    check_same_error("spectrogram", noise((100,), (60,), (40,)), sample=2, **arguments)


@pytest.mark.parametrize("layout", ["ft", "tf"])
@pytest.mark.parametrize("reference", [None, 1.0, -2.0])
def test_chains(layout, reference):
    def graph(x):
        powers = fn.spectrogram(x, window_length=64, window_step=20, layout=layout)
        mel = fn.mel_filter_bank(powers, nfilter=20, sample_rate=16000.0)
        decibels = fn.to_decibels(mel, reference=reference, cutoff_db=-60.0)
        return fn.mfcc(decibels, axis=layout.index("f"), n_mfcc=7, lifter=5.0)

    alike(graph, signals(1, 100, 1000))


def test_chains_that_are_not_as_usual():
    def graph(x):
        powers = fn.spectrogram(x, window_length=64, window_step=20)
        twice = fn.mel_filter_bank(fn.mel_filter_bank(powers, nfilter=20), nfilter=9)
        other = fn.spectrogram(x, window_length=32, window_step=20)
        return twice, fn.mel_filter_bank(fn.to_decibels(other)), fn.to_decibels(powers)

    alike(graph, signals(1, 100, 1000))


@pytest.mark.sweep
@pytest.mark.parametrize("formula", ["slaney", "htk"])
@pytest.mark.parametrize(
    ("shapes", "layout"),
    [
        ([(33, 50), (65, 7), (33, 1)], "ft"),
        ([(50, 33), (7, 65)], "tf"),
        ([(2, 33, 20), (3, 20, 5)], ""),
        ([(33, 3, 4), (9, 3, 4)], "fct"),
        ([(33,), (65,)], "f"),
        ([(0, 4), (1, 4), (2, 4)], "ft"),
        ([(33, 0), (33, 5)], "ft"),
    ],
)
def test_filters(formula, shapes, layout):
    check_alike(
        "mel_filter_bank",
        noise(*shapes),
        layout=layout,
        nfilter=30,
        sample_rate=8000.0,
        mel_formula=formula,
    )


@pytest.mark.parametrize("reference", [None, 1.0, 1e-42])
@pytest.mark.parametrize("cutoff", [-200.0, -40.0])
def test_decibels(reference, cutoff):
    special = np.float32([0, 1e-30, 1e-42, -1, 2, np.inf, np.nan, 1e38, 0.99999, 1.00001])
    data = [*noise((), (3, 700), (0, 5)), np.zeros(3, np.float32), -np.ones(2, np.float32), special]
    for sample in data:
        given = {} if reference is None else {"reference": reference}
        check_alike("to_decibels", [sample, sample * 3], cutoff_db=cutoff, **given)


@pytest.mark.sweep
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize(
    ("shapes", "axis"),
    [([(40, 50), (20, 3), (3, 3)], 0), ([(50, 40), (3, 13)], 1), ([(3, 40, 5), (1, 9, 2)], 1)],
)
def test_coefficients(kind, shapes, axis):
    check_alike("mfcc", noise(*shapes), axis=axis, dct_type=kind, n_mfcc=13, lifter=9.0)


def test_coefficients_of_what_has_none():
    check_alike("mfcc", noise((0, 5), (4, 5)))
    check_alike("mfcc", noise((4, 0), (4, 5)))
    check_same_error("mfcc", noise((4, 5), (1, 5)), sample=1, dct_type=1)


def test_several_queues_at_a_time():
    """In dynamic mode, loops of several threads share operators; each has a queue of its own."""
    plan = SpectrumPlan(Framing(hann_window(48), 20, center=True, reflect=True), 48, squared=True)
    bands, shared = mel_bands(25, 9, 8000.0, 0.0, 4000.0, "htk", True), kernels.DevicePlan(plan)
    on_device = kernels.DeviceBands(bands)
    data = signals(300, 300)
    with gpu_session() as one, gpu_session() as other:
        batches = [session.upload(data) for session in (one, other)]
        told = []
        for turn in range(3):
            for session, batch in zip((one, other), batches, strict=True):
                use = on_device if turn else None
                found = SpectrumBatch(
                    shared, batch, np.array([16]), time_first=False, bands=use
                ).materialise(session.queue)
                got = session.download(found)
                for signal, values in zip(data, got, strict=True):
                    expected = np.empty(values.shape, np.float32)
                    rows, own = Rows([signal]), bands if turn else None
                    out = Rows.of_array(expected[None])
                    plan.write(rows, np.array([16]), out, np.empty, bands=own)
                    np.testing.assert_array_equal(values, expected)
                if turn:
                    arguments = {"time_first": False, "note_largest": False}
                    told.append(shared.settings(session.queue, use, None, **arguments))
    assert told[0] is told[2]
    assert told[1] is told[3]
    assert told[0] != told[1]


@pytest.mark.parametrize("mode", ["eager", "sync_cpu", "deferred"])
def test_dynamic_mode(mode):
    data = signals(900, 400, 333)

    def graph(x):
        powers = ndd.spectrogram(x, window_length=64, window_step=20)
        mel = ndd.mel_filter_bank(powers, sample_rate=16000.0, nfilter=20)
        decibels = ndd.to_decibels(mel, cutoff_db=-60.0)
        return mel, ndd.to_decibels(mel, reference=1.0), ndd.mfcc(decibels, n_mfcc=5)

    with getattr(ndd.EvalMode, mode):
        found = graph(ndd.as_batch(data).gpu())
        for got, expected in zip(found, graph(ndd.as_batch(data)), strict=True):
            for one, other in zip(got.cpu().tensors, expected.tensors, strict=True):
                np.testing.assert_array_equal(np.asarray(one), np.asarray(other))
