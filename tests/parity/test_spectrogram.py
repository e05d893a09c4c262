"""`fn.spectrogram` and `fn.power_spectrum` against DALI."""

from __future__ import annotations

import functools
import itertools

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity, run_graph

RNG = np.random.default_rng(3)
SIZES = (1, 2, 3, 100, 257, 511, 512, 513, 1000, 4000, 20_000)


def signals(*sizes: int) -> list[np.ndarray]:
    return [RNG.standard_normal(n).astype(np.float32) for n in sizes]


def same(graph, *feeds, **options):
    assert_parity(graph, *feeds, relative=1e-4, absolute=1e-6, **options)


@pytest.mark.parametrize("layout", ["ft", "tf"])
@pytest.mark.parametrize("power", [1, 2])
def test_defaults(layout, power):
    same(lambda lib, x: lib.fn.spectrogram(x, layout=layout, power=power), signals(*SIZES))


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize(
    ("nfft", "length", "step"),
    [
        (512, 400, 160),
        (400, 400, 160),
        (512, 512, 1000),
        (2048, 1200, 300),
        (1024, 1024, 256),
        (16, 16, 1),
        (15, 15, 4),
        (301, 301, 100),
        (300, 200, 70),
        (127, 64, 64),
        (128, 63, 17),
        (1102, 1102, 441),
        (961, 900, 333),
        (7, 5, 3),
        (5, 1, 2),
        (3, 3, 1),
        (4, 2, 2),
        (521, 400, 160),  # a prime
        (1042, 1000, 250),
    ],
)
@pytest.mark.parametrize("center", [True, False])
@pytest.mark.parametrize("reflect", [True, False])
def test_windows(nfft, length, step, center, reflect):
    shortest = 1 if center else max(length - step + 1, 1)
    sizes = sorted({shortest, shortest + 1, length, *(n for n in SIZES if n > shortest)})
    same(
        lambda lib, x: [
            lib.fn.spectrogram(
                x,
                nfft=nfft,
                window_length=length,
                window_step=step,
                center_windows=center,
                reflect_padding=reflect,
                layout=layout,
            )
            for layout in ("ft", "tf")
        ],
        signals(*sizes),
    )


@pytest.mark.parametrize("length", [1, 2, 64, 100])
def test_window_functions(length):
    window = list(map(float, RNG.standard_normal(length)))
    same(
        lambda lib, x: lib.fn.spectrogram(
            x, window_fn=window, window_length=length, window_step=32, nfft=128
        ),
        signals(500, 100),
    )


@pytest.mark.parametrize(
    ("shape", "layout"), [((300, 1), "tc"), ((1, 300), ""), ((1, 300, 1), ""), ((300,), "t")]
)
def test_axes_of_one_element(shape, layout):
    feed = [x.reshape(shape) for x in signals(300, 300)]
    same(lambda lib, x: lib.fn.spectrogram(x, window_length=64), feed, layouts=layout)


def test_numbers():
    same(lambda lib, x: lib.fn.spectrogram(x, window_length=64), [np.float32(3)] * 2)


def test_pure_tones_and_silence():
    time = np.arange(8000) / 16000
    tones = [np.sin(2 * np.pi * f * time).astype(np.float32) for f in (0.0, 440.0, 8000.0)]
    same(lambda lib, x: lib.fn.spectrogram(x, nfft=512), [*tones, np.ones(8000, np.float32)])


def test_views_as_signals():
    same(
        lambda lib, x: lib.fn.spectrogram(x[100:900], window_length=64, window_step=16),
        signals(1000, 2000),
    )


@pytest.mark.parametrize(
    ("arguments", "match"),
    [
        ({"nfft": 256}, "`nfft` is 256"),
        ({"nfft": 0}, "`nfft` is 0"),
        ({"nfft": -3}, "`nfft` is -3"),
        ({"window_length": 0}, "`window_length` is 0"),
        ({"window_length": -1}, "`window_length` is -1"),
        ({"window_step": 0}, "`window_step` is 0"),
        ({"window_step": -1}, "`window_step` is -1"),
        ({"power": 0}, "power"),
        ({"power": 3}, "power"),
        ({"layout": "xx"}, "layout"),
        ({"layout": "TF"}, "layout"),
        ({"layout": ""}, "layout"),
        ({"window_fn": [1.0] * 100}, "`window_fn` has 100 weights"),
        ({"window_fn": []}, "`window_fn` has 0 weights"),
        ({"window_length": 1001, "center_windows": False, "window_step": 1}, "too short"),
    ],
)
def test_wrong_arguments(arguments, match):
    assert_both_raise(lambda lib, x: lib.fn.spectrogram(x, **arguments), signals(1000), match=match)


@pytest.mark.parametrize("dtype", ["int16", "float64", "uint8", "float16"])
def test_wrong_types(dtype):
    feed = [x.astype(dtype) for x in signals(1000)]
    assert_both_raise(lambda lib, x: lib.fn.spectrogram(x), feed, match="FLOAT")


@pytest.mark.parametrize("center", [True, False])
def test_empty_signals(center):
    feed = [*signals(1000), np.zeros(0, np.float32)]
    graph = lambda lib, x: lib.fn.spectrogram(x, center_windows=center)  # noqa: E731
    assert_both_raise(graph, feed, match="is empty")


def test_several_channels():
    feed = [np.zeros((500, 2), np.float32)]
    assert_both_raise(lambda lib, x: lib.fn.spectrogram(x), feed, match="single axis")


@pytest.mark.parametrize("nfft", [1, 2])
def test_the_shortest_transforms(nfft):
    """DALI has none of 1 and 2 elements."""
    feed = signals(9)
    graph = lambda lib, x: lib.fn.spectrogram(x, window_length=nfft, window_step=1)  # noqa: E731
    with pytest.raises(RuntimeError, match="plan"):
        run_graph("dali", graph, feed)
    [[found]] = run_graph("headrace", graph, feed)
    assert found.samples[0].shape == (nfft // 2 + 1, 10)
    if nfft == 1:
        # The window's only weight is 1; the last one reads the mirrored signal.
        mirrored = np.append(feed[0], feed[0][-2])
        np.testing.assert_allclose(found.samples[0][0], mirrored**2, rtol=1e-6)


@pytest.mark.sweep(pairs=True)
@pytest.mark.parametrize("axis", [-1, 0, 1, 2, -2])
@pytest.mark.parametrize("nfft", [None, 0, 16, 8, 11, 3])
@pytest.mark.parametrize("power", [1, 2])
def test_power_spectrum(axis, nfft, power):
    arguments = {"axis": axis, "power": power}
    if nfft is not None:
        arguments["nfft"] = nfft
    feed = [RNG.standard_normal(s).astype(np.float32) for s in [(5, 7, 11), (9, 3, 40)]]
    same(lambda lib, x: lib.fn.power_spectrum(x, **arguments), feed, layouts="abc")


@pytest.mark.parametrize("shape", [(11,), (0, 5), (1, 1, 3), (40, 33)])
def test_power_spectrum_of_shapes(shape):
    feed = [RNG.standard_normal(shape).astype(np.float32)] * 2
    same(lambda lib, x: lib.fn.power_spectrum(x), feed)


@pytest.mark.parametrize(
    ("shape", "dtype", "arguments", "match"),
    [
        ((5, 7), "float32", {"axis": 2}, "`axis` is 2"),
        ((5, 7), "float32", {"power": 0}, "power"),
        ((5, 7), "float64", {}, "FLOAT"),
        ((5, 7), "int16", {}, "FLOAT"),
        ((), "float32", {}, "no axis"),
        ((5, 0), "float32", {}, "no elements"),
    ],
)
def test_power_spectrum_of_what_has_none(shape, dtype, arguments, match):
    feed = [np.ones(shape, dtype)]
    assert_both_raise(lambda lib, x: lib.fn.power_spectrum(x, **arguments), feed, match=match)


def test_frames_do_not_depend_on_their_neighbours():
    """A frame has the same bits whichever others are worked out with it."""
    (signal,) = signals(4000)
    options = {"window_length": 100, "window_step": 40, "center_windows": False}
    for nfft, count in itertools.product((100, 127, 128), (1, 7, 16, 17, 40)):
        graph = functools.partial(_spectrogram, nfft=nfft, **options)
        cut = signal[: 100 + 40 * (count - 1)]
        [[whole]] = run_graph("headrace", graph, [signal])
        [[part]] = run_graph("headrace", graph, [cut])
        np.testing.assert_array_equal(part.samples[0], whole.samples[0][:, :count])


def _spectrogram(lib, x, **arguments):
    return lib.fn.spectrogram(x, **arguments)
