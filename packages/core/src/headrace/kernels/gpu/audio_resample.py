"""Resampling of audio by a windowed sinc."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from headrace.kernels.cpu.audio.widening import scale_between
from headrace.kernels.gpu.device_constant import DeviceConstant
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, launch_records, quotient_up
from headrace.kernels.gpu.shared import record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue

if TYPE_CHECKING:
    from headrace.kernels.cpu.audio.sinc_window import SincWindow

_CLIP = record("""audio_resample:Clip {
    uint32 first_block;
    int32 channels;
    uint64 source, out;
    int64 frames, out_frames;
    double step;  // frames of the source that one of the output is
}""")


class AudioResampling:
    """Resampling with one window, which is uploaded once."""

    def __init__(self, window: SincWindow, *, scaled: bool) -> None:
        self._lobes, self._taps = window.lobes, window.taps
        # Neighbouring threads are in different phases of the same tap.
        pairs = np.stack(
            [each.reshape(-1, window.taps).T for each in (window.weights, window.steps)], axis=-1
        )
        self._weights = DeviceConstant(np.ascontiguousarray(pairs))
        self._scaled = scaled

    def run(self, queue: Queue, source: DeviceBatch, steps: np.ndarray, out: DeviceBatch) -> None:
        """Fill `out` with samples at the places ``0, step, 2 * step, ...`` of `source`.

        `steps`: float64 ``(samples,)``: how many frames of `source` a frame of `out` is.
        """
        records = np.empty(len(out), _CLIP)
        records["channels"] = source.shapes[:, 1] if source.ndim == 2 else 1
        records["source"], records["out"] = source.pointers, out.pointers
        records["frames"], records["out_frames"] = source.shapes[:, 0], out.shapes[:, 0]
        records["step"] = steps
        factor, summand, scale = np.float32(1), np.float32(0), np.float32(1)
        if self._scaled:
            factor, summand = scale_between(source.dtype, out.dtype)
            scale = np.float32(1 if out.dtype.kind == "f" else np.iinfo(out.dtype).max)
        launch_records(
            queue,
            kernel("audio_resample.cu", "resample_audio", source.dtype, out.dtype),
            records,
            np.where(records["channels"] > 0, quotient_up(out.shapes[:, 0], THREADS), 0),
            np.uint64(self._weights.address(queue)),
            np.int32(self._taps),
            np.int32(self._lobes),
            factor,
            summand,
            scale,
        )
