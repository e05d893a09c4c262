"""`fn.mel_filter_bank`, `fn.to_decibels` and `fn.mfcc` against DALI."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity

AUDIO = Path(__file__).parents[1] / "data/audio"
RNG = np.random.default_rng(4)


def noise(*shape: int) -> np.ndarray:
    return RNG.random(shape).astype(np.float32)


def same(graph, *feeds, **options):
    assert_parity(graph, *feeds, relative=1e-4, absolute=2e-6, **options)


BANKS = [
    {},
    {"normalize": False},
    {"sample_rate": 16000.0},
    {"sample_rate": 16000.0, "nfilter": 40, "freq_low": 100.0, "freq_high": 7000.0},
    {"sample_rate": 16000.0, "freq_high": 12000.0},
    {"sample_rate": 8000.0, "nfilter": 20, "freq_low": 2000.0},
    {"freq_high": -1.0},
    {"nfilter": 1},
    {"nfilter": 1000},
    {"sample_rate": 16000.0, "freq_low": 900.0, "freq_high": 1100.0, "nfilter": 13},
]


@pytest.mark.sweep
@pytest.mark.parametrize("formula", ["slaney", "htk"])
@pytest.mark.parametrize("arguments", BANKS, ids=str)
def test_filters(formula, arguments):
    # The weights themselves, to the last digits.
    assert_parity(
        lambda lib, x: lib.fn.mel_filter_bank(x, mel_formula=formula, **arguments),
        [np.eye(bins, dtype=np.float32) for bins in (2, 3, 5, 100, 129, 257, 513)],
        relative=1e-6,
        absolute=1e-6,
    )
    same(
        lambda lib, x: lib.fn.mel_filter_bank(x, mel_formula=formula, **arguments),
        [noise(257, 37), noise(201, 100), noise(1025, 16)],
    )


@pytest.mark.parametrize(
    ("layout", "shape"),
    [
        ("", (257, 9)),
        ("ft", (257, 40)),
        ("tf", (40, 257)),
        ("tf", (5, 257)),
        ("", (1, 257, 9)),
        ("cft", (2, 257, 9)),
        ("cft", (3, 129, 50)),
        ("ctf", (2, 9, 257)),
        ("ftc", (129, 20, 2)),
        ("fct", (129, 2, 20)),
        ("", (2, 3, 65, 20)),
        ("", (257,)),
        ("f", (257,)),
        ("f", (1,)),
        ("ft", (0, 5)),
        ("ft", (257, 0)),
        ("ft", (1, 9)),
    ],
)
def test_layouts_of_spectra(layout, shape):
    feed = [noise(*shape), noise(*shape)]
    same(lambda lib, x: lib.fn.mel_filter_bank(x, sample_rate=16000.0), feed, layouts=layout)


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"nfilter": 0}, "`nfilter` is 0"),
        ({"nfilter": -1}, "`nfilter` is -1"),
        ({"mel_formula": "HTK"}, "mel_formula"),
        ({"freq_low": -1.0}, "`freq_low` is -1"),
        ({"freq_low": 1000.0, "freq_high": 900.0}, "`freq_high` is 900"),
        ({"freq_low": 1000.0, "freq_high": 1000.0}, "`freq_high` is 1000"),
        ({"freq_low": 30000.0}, "`freq_high` is 22050"),
        ({"freq_high": 50000.0}, "at most"),
        ({"sample_rate": 0.0}, "`sample_rate` is 0"),
        ({"sample_rate": -5.0}, "`sample_rate` is -5"),
    ],
)
def test_wrong_filters(arguments, match):
    assert_both_raise(
        lambda lib, x: lib.fn.mel_filter_bank(x, **arguments), [noise(257, 9)], match=match
    )


@pytest.mark.parametrize("name", ["mel_filter_bank", "to_decibels", "mfcc"])
@pytest.mark.parametrize("dtype", ["float64", "int16", "float16"])
def test_wrong_types(name, dtype):
    feed = [noise(30, 9).astype(dtype)]
    assert_both_raise(lambda lib, x: getattr(lib.fn, name)(x), feed, match="FLOAT")


def test_spectra_without_frequencies():
    graph = lambda lib, x: lib.fn.mel_filter_bank(x)  # noqa: E731
    assert_both_raise(graph, [noise(30, 9)], layouts="xy", match='no axis "f"')
    assert_both_raise(graph, [np.float32(1)], match="single number")


VALUES = np.array(
    [0, 1e-30, 0.5, 1, 2, 3, -1, -5, 1e-38, 1e-42, 1e30, 0.99999, 1.00001, 7e-9], np.float32
)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"reference": 1.0},
        {"reference": -1.0},
        {"reference": 2.0},
        {"reference": 1e-42},
        {"multiplier": 20.0},
        {"multiplier": 0.0},
        {"multiplier": 0.0, "reference": 2.0},
        {"multiplier": -10.0},
        {"cutoff_db": -80.0},
        {"cutoff_db": 100.0},
        {"cutoff_db": 0.0},
        {"cutoff_db": -440.0, "reference": 1.0},
        {"cutoff_db": -1000.0, "reference": 1.0},
    ],
    ids=str,
)
def test_decibels(arguments):
    feed = [VALUES, noise(1000) * 1e-6, np.zeros(7, np.float32), -noise(40), noise(17) * 1e9]
    same(lambda lib, x: lib.fn.to_decibels(x, **arguments), feed)


@pytest.mark.parametrize(
    "values", [(1, np.inf), (1, np.nan), (np.nan, 1), (1e-42, 1e-42), (0, 1e-42)]
)
def test_decibels_of_what_is_not_finite(values):
    feed = [np.array(values, np.float32)]
    same(
        lambda lib, x: (lib.fn.to_decibels(x), lib.fn.to_decibels(x, reference=2.0)),
        feed,
    )


@pytest.mark.parametrize("shape", [(), (0, 5), (1,), (2, 3, 4, 5, 6), (257, 33)])
def test_decibels_of_shapes(shape):
    feed = [noise(*shape), noise(*shape)]
    same(lambda lib, x: lib.fn.to_decibels(x), feed)


def test_no_reference():
    graph = lambda lib, x: lib.fn.to_decibels(x, reference=0.0)  # noqa: E731
    assert_both_raise(graph, [noise(5)], match="`reference` argument can.t be zero")


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("kind", [1, 2, 3, 4])
@pytest.mark.parametrize("normalize", [False, True])
@pytest.mark.parametrize("count", [1, 13, 20, 40, 300])
@pytest.mark.parametrize("lifter", [0.0, 22.0, -1.0, 5.0])
def test_coefficients(kind, normalize, count, lifter):
    if kind == 1 and normalize:
        return
    feed = [noise(40, 30) - 0.5, noise(128, 7), noise(2, 3), noise(33, 100)]
    same(
        lambda lib, x: lib.fn.mfcc(
            x, dct_type=kind, normalize=normalize, n_mfcc=count, lifter=lifter
        ),
        feed,
        layouts="ft",
    )


@pytest.mark.parametrize(
    ("shape", "axis"),
    [
        ((30, 40), 1),
        ((3, 40, 20), 1),
        ((3, 40, 20), 0),
        ((3, 20, 40), 2),
        ((2, 3, 40, 5), 2),
        ((0, 5), 0),
        ((5, 0), 0),
        ((1, 9), 0),
        ((5, 1), 1),
    ],
)
def test_axes_of_coefficients(shape, axis):
    feed = [noise(*shape), noise(*shape)]
    same(lambda lib, x: lib.fn.mfcc(x, axis=axis), feed)


@pytest.mark.parametrize(
    ("shape", "arguments", "match"),
    [
        ((40, 9), {"axis": -1}, "`axis` is -1"),
        ((40, 9), {"axis": 2}, "Axis 2 is out of bounds"),
        ((40, 9), {"dct_type": 0}, "dct_type"),
        ((40, 9), {"dct_type": 5}, "dct_type"),
        ((40, 9), {"n_mfcc": 0}, "`n_mfcc` is 0"),
        ((40, 9), {"n_mfcc": -1}, "`n_mfcc` is -1"),
        ((40, 9), {"normalize": True, "dct_type": 1}, "`normalize`"),
        ((1, 9), {"dct_type": 1}, "at least 2"),
        ((40,), {}, "at least two"),
        ((), {}, "at least two"),
    ],
)
def test_wrong_coefficients(shape, arguments, match):
    assert_both_raise(lambda lib, x: lib.fn.mfcc(x, **arguments), [noise(*shape)], match=match)


@pytest.mark.parametrize("layout", ["ft", "tf"])
def test_the_chain(layout):
    # With a few frames only, what lies near their mean has few digits right.
    rng = np.random.default_rng(0)
    feed = [rng.standard_normal(n).astype(np.float32) for n in (16000, 5000, 2500)]

    def graph(lib, x):
        powers = lib.fn.spectrogram(x, nfft=512, window_length=400, window_step=160, layout=layout)
        mel = lib.fn.mel_filter_bank(powers, sample_rate=16000.0, nfilter=80, freq_high=8000.0)
        decibels = lib.fn.to_decibels(mel, cutoff_db=-80.0)
        axis = layout.index("f")
        return (
            decibels,
            lib.fn.mfcc(decibels, axis=axis, n_mfcc=13, lifter=22.0, normalize=True),
            lib.fn.normalize(decibels, axes=[layout.index("t")]),
            lib.fn.normalize(decibels, batch=layout == "ft", axes=[0, 1], epsilon=0.1, ddof=1),
        )

    assert_parity(graph, feed, relative=1e-4, absolute=1e-5)


@pytest.mark.parametrize("axes", [[0, 1], [1], [0]])
def test_speech(axes):
    """From encoded files to normalised decibels, as one trains on them."""
    names = ("river.flac", "ferry.ogg", "market.ogg")
    feed = [np.frombuffer((AUDIO / name).read_bytes(), np.uint8) for name in names]

    def graph(lib, encoded):
        audio, _ = lib.fn.decoders.audio(encoded, dtype=lib.types.FLOAT, downmix=True)
        audio = lib.fn.slice(
            audio, rel_start=[0.2], shape=[16000], axes=[0], out_of_bounds_policy="pad"
        )
        powers = lib.fn.spectrogram(audio * 0.7, nfft=512, window_length=400, window_step=160)
        mel = lib.fn.mel_filter_bank(powers, sample_rate=16000.0, nfilter=128)
        decibels = lib.fn.to_decibels(mel, cutoff_db=-80.0)
        return mel, decibels, lib.fn.normalize(decibels, axes=axes)

    assert_parity(graph, feed, relative=1e-4, absolute=1e-5)
