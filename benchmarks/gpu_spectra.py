"""Spectra on the GPU beside PyTorch's: signals of noise in device memory.

    hatch run bench:gpu-spectra
    hatch run bench:gpu-spectra --batch-size 8 --seconds 10

*device* is the time between two CUDA events, *host* what the interpreter takes to queue the work.
PyTorch's figures are those of `torch.stft` (cuFFT), a matrix product and `log10`, eager, without
scripting, for the same spectra.
"""

from __future__ import annotations

import argparse
import contextlib
from collections.abc import Callable
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

import headrace.fn
import headrace.kernels.gpu.strided_copy  # noqa: F401 - tells queues how to copy through strides
from benchmarks.gpu_kernels import emulated
from benchmarks.support.device_clock import DeviceClock, HostClock
from benchmarks.support.operator_chain import Call, OperatorChain
from headrace.kernels.cpu.bands import mel_bands
from headrace.tensors.gpu.device import get_device

_RATE = 16000
_REPETITIONS = 20


def _cases(nfft: int, length: int, step: int) -> dict[str, list[Call]]:
    spectrogram: Call = (
        "spectrogram",
        {"nfft": nfft, "window_length": length, "window_step": step},
    )
    mel: Call = ("mel_filter_bank", {"sample_rate": float(_RATE), "nfilter": 128})
    return {
        "spectrogram": [spectrogram],
        "+ mel": [spectrogram, mel],
        "+ mel, dB of a given reference": [spectrogram, mel, ("to_decibels", {"reference": 1.0})],
        "+ mel, dB of the largest": [spectrogram, mel, ("to_decibels", {})],
        "+ mel, dB, normalize": [
            spectrogram,
            mel,
            ("to_decibels", {}),
            ("normalize", {"axes": [1]}),
        ],
        "+ mel, dB, mfcc": [spectrogram, mel, ("to_decibels", {}), ("mfcc", {})],
    }


def _by_torch(signals: np.ndarray, nfft: int, length: int, step: int) -> dict[str, Callable]:
    import torch

    data = torch.from_numpy(signals).cuda()
    bands = mel_bands(nfft // 2 + 1, 128, float(_RATE), 0.0, _RATE / 2, "slaney", True)
    matrix = np.zeros((128, nfft // 2 + 1), np.float32)
    for row, (first, count, at) in zip(matrix, bands.ranges, strict=True):
        row[first : first + count] = bands.weights[at : at + count]
    filters = torch.from_numpy(matrix).cuda()
    window = torch.hann_window(length, device="cuda")

    def powers() -> Any:
        spectra = torch.stft(data, nfft, step, length, window, center=True, return_complex=True)
        return spectra.real.square() + spectra.imag.square()

    def decibels() -> Any:
        mel = torch.matmul(filters, powers())
        largest = mel.amax(dim=(1, 2), keepdim=True)
        return 10 * torch.log10(torch.clamp(mel / largest, min=1e-20))

    return {
        "spectrogram": powers,
        "+ mel": lambda: torch.matmul(filters, powers()),
        "+ mel, dB of the largest": decibels,
    }


def _measured_torch(work: Callable[[], Any]) -> float:
    import torch

    for _ in range(3):
        work()
    times = []
    for _ in range(_REPETITIONS):
        begin, end = (torch.cuda.Event(enable_timing=True) for _ in "ab")
        torch.cuda._sleep(2_000_000)
        begin.record()
        work()
        end.record()
        end.synchronize()
        times.append(1e3 * begin.elapsed_time(end))
    return float(np.median(times))


def _measured(device: Any, calls: list[Call], signals: np.ndarray, clock: Any, stream: int) -> Any:
    count, size = signals.shape
    chain = OperatorChain(device, stream, calls, signals.dtype, 1, "", count)
    batch = chain.queue.empty((size,), np.float32, count)
    block = device.pinned.empty(signals.shape, np.float32)
    block[:] = signals
    runtime = device.runtime
    runtime.copy(int(batch.pointers[0]), block.ctypes.data, block.nbytes, stream)
    runtime.synchronize(stream)
    kept: list[Any] = []

    def work(k: int) -> None:
        kept.append(chain(batch, seed=k))
        kept.extend(chain.queue.finish())

    for k in range(3):
        work(k)
    found = clock.microseconds(work, _REPETITIONS)
    kept.clear()
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--batch-size", type=int, nargs="+", default=[8, 64])
    parser.add_argument("--seconds", type=float, nargs="+", default=[1.0, 10.0])
    parser.add_argument("--smoke", action="store_true", help="tiny, on the emulated GPU")
    args = parser.parse_args()
    with emulated() if args.smoke else contextlib.nullcontext():
        device = get_device(0)
        device.runtime.activate()
        stream = device.runtime.acquire_stream()
        clock = (HostClock if args.smoke else DeviceClock)(device.runtime, stream)
        settings = [(512, 400, 160), (400, 400, 160), (2048, 2048, 512)]
        for count in [1] if args.smoke else args.batch_size:
            for seconds in [0.05] if args.smoke else args.seconds:
                signals = np.random.default_rng(0).standard_normal(
                    (count, int(seconds * _RATE)), np.float32
                )
                for setting in settings[:1] if args.smoke else settings:
                    peers = {} if args.smoke else _by_torch(signals, *setting)
                    nfft, length, step = setting
                    table = Table(
                        title=f"{count} signals of {seconds:g} s at 16 kHz, nfft {nfft}, window "
                        f"{length}, step {step}"
                    )
                    for name in ("", "host us", "device us", "clips/s", "PyTorch us", "ratio"):
                        table.add_column(name, justify="right" if name else "left")
                    for name, calls in _cases(*setting).items():
                        on_device, host = _measured(device, calls, signals, clock, stream)
                        row = [
                            f"{host:,.0f}",
                            f"{on_device:,.1f}",
                            f"{1e6 * count / on_device:,.0f}",
                        ]
                        if name in peers:
                            peer = _measured_torch(peers[name])
                            row += [f"{peer:,.1f}", f"{peer / on_device:.2f}"]
                        table.add_row(name, *row)
                    Console(width=110).print(table)


if __name__ == "__main__":
    main()
