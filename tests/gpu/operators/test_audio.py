"""Audio operators on the GPU give what they give on the CPU, bit by bit."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import HeadraceError
from headrace.types import DALIDataType
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator
from tests.support.speech import decoded, encoded

INTEGERS = ("uint8", "int8", "uint16", "int16", "uint32", "int32")
WIDE = (*INTEGERS, "uint64", "int64", "float32")
NAMES = {"float32": DALIDataType.FLOAT, "float64": DALIDataType.FLOAT64}


def dali_type(dtype):
    return NAMES.get(dtype) or DALIDataType[dtype.upper()]


def noise(*shape, dtype="float32", seed=0):
    values = np.random.default_rng(seed).uniform(-1, 1, shape)
    if dtype.startswith("float"):
        return values.astype(dtype)
    info = np.iinfo(dtype)
    return (values * 0.45 * info.max + (0 if info.min else info.max / 2)).astype(dtype)


def same(name, *inputs, **arguments):
    found = run_gpu_operator(name, *inputs, **arguments)
    expected = run_cpu_operator_on_batch(name, *inputs, **arguments)
    if not isinstance(found, tuple):
        found, expected = (found,), (expected,)
    for got_batch, wanted_batch in zip(found, expected, strict=True):
        for got, wanted in zip(got_batch, wanted_batch, strict=True):
            np.testing.assert_array_equal(got, wanted)


def clips(dtype="float32", channels=()):
    lengths = (700, 1, 0, 257)
    return [noise(n, *channels, dtype=dtype, seed=n) for n in lengths]


@pytest.mark.parametrize(
    "arguments",
    [
        {"scale": 0.37},
        {"scale": 1.0},
        {"scale": 2.6},
        {"scale": 0.0},
        {"in_rate": 44100, "out_rate": 16000},
        {"in_rate": 16000.1, "out_rate": 22050.3, "quality": 10},
        {"scale": 1.3, "quality": 0},
        {"scale": 0.9, "quality": 100},
    ],
)
def test_resample(arguments):
    same("audio_resample", clips(), **arguments)


@pytest.mark.sanitize
@pytest.mark.parametrize("channels", [0, 1, 3])
def test_resample_channels(channels):
    same("audio_resample", clips(channels=(channels,)), scale=1.4)


@pytest.mark.sweep
@pytest.mark.parametrize("target", [*INTEGERS, "float32"])
@pytest.mark.parametrize("source", ["uint8", "int16", "uint32", "int32", "float32"])
def test_resample_types(source, target):
    same("audio_resample", clips(source), scale=1.2, dtype=dali_type(target))
    same("audio_resample", [noise(300, dtype=source) * 2], scale=0.8)


@pytest.mark.sanitize
def test_resample_arguments_for_each_sample():
    data = [noise(500), noise(30), noise(256)]
    scales = [np.float32(v) for v in (0.5, 1.3, 2)]
    same("audio_resample", data, scale=scales)
    same("audio_resample", data, in_rate=scales, out_rate=scales[::-1])
    same("audio_resample", data, in_rate=1.1, out_rate=scales)
    same("audio_resample", data, out_length=[np.int64(v) for v in (0, 700, 256)])
    same("audio_resample", data, out_length=100)


@pytest.mark.parametrize(
    "arguments",
    [
        {"scale": -1},
        {"out_length": 3},
        {"out_length": -3},
        {"in_rate": 0, "out_rate": 1},
        {"in_rate": 1, "out_rate": -1},
        {"scale": 1e20},
    ],
)
def test_resample_errors(arguments):
    with pytest.raises(HeadraceError, match=r"sample [01] of the batch"):
        run_gpu_operator("audio_resample", [noise(5), noise(0), noise(9)], **arguments)


@pytest.mark.sanitize
@pytest.mark.parametrize("border", ["clamp", "zero", "reflect"])
def test_preemphasis_borders(border):
    same("preemphasis_filter", [*clips(), noise(2), noise(5000)], border=border)


@pytest.mark.sweep
@pytest.mark.parametrize("target", [*WIDE, "float64"])
@pytest.mark.parametrize("source", ["uint8", "int16", "uint32", "int64", "float32", "float64"])
def test_preemphasis_types(source, target):
    same("preemphasis_filter", clips(source), dtype=dali_type(target))


@pytest.mark.sanitize
def test_preemphasis_coefficients():
    data = [noise(50), noise(20, 2), noise(3, 4, 5)][:1] * 3
    same("preemphasis_filter", data, preemph_coeff=[np.float32(v) for v in (0.5, 0, -1.25)])
    same("preemphasis_filter", [noise(20, 2), noise(7, 3)], preemph_coeff=0.3)


@pytest.mark.sanitize
@pytest.mark.parametrize("dtype", WIDE)
def test_nonsilent_types(dtype):
    data = clips(dtype)
    for arguments in (
        {"window_length": 16, "reset_interval": 32},
        {"window_length": 16, "reset_interval": -1, "cutoff_db": -3},
        {"window_length": 300, "reset_interval": 600, "cutoff_db": -0.5},
        {"window_length": 1, "reset_interval": 1, "cutoff_db": -1},
    ):
        same("nonsilent_region", data, **arguments)


@pytest.mark.parametrize("seed", range(10))
def test_nonsilent_regions(seed):
    rng = np.random.default_rng(seed)
    data = []
    for length in (900, 1, 33, 0, 1500):
        clip = noise(length, seed=seed) * np.float32(10 ** rng.uniform(-3, 3))
        begin, end = sorted(rng.integers(0, length + 1, 2))
        clip[:begin] = clip[end:] = 0
        data.append(clip)
    window, times = int(rng.integers(1, 60)), int(rng.integers(1, 30))
    for cutoff in (-130, -60, -10):
        same(
            "nonsilent_region",
            data,
            window_length=window,
            reset_interval=window * times,
            cutoff_db=cutoff,
        )
        same("nonsilent_region", data, cutoff_db=cutoff, reference_power=1.0)


def test_nonsilent_speech():
    same("nonsilent_region", [decoded(encoded("river.flac"))[:, 0]], cutoff_db=-40)


@pytest.mark.sanitize
def test_silence():
    data = [np.zeros(100, np.float32), np.zeros(0, np.float32)]
    same("nonsilent_region", data, window_length=8, reset_interval=16)
    same("nonsilent_region", data, window_length=8, reset_interval=16, reference_power=1.0)
