"""Spectrograms, and what filters and a logarithm make of them, in one launch."""

from __future__ import annotations

import math
from typing import TYPE_CHECKING, Any
from weakref import WeakKeyDictionary

import numpy as np

from headrace.kernels.cpu.decibels import NO_DECIBELS
from headrace.kernels.gpu.device_constant import DeviceConstant
from headrace.kernels.gpu.program import kernel
from headrace.kernels.gpu.records import THREADS, fill_fields
from headrace.kernels.gpu.shared import enumeration, record
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.gpu.queue import Queue
from headrace.tensors.gpu.traced import traced

if TYPE_CHECKING:
    from headrace.kernels.cpu.bands import Bands
    from headrace.kernels.cpu.decibels import DecibelScale
    from headrace.kernels.cpu.spectrogram import SpectrumPlan

_LANES = (16, 8, 4, 2, 1)
"""Frames that a block may take; there is a kernel for each."""
_SHARED_BYTES = 48 << 10
_ENOUGH_BLOCKS = 512
"""Blocks up to which smaller ones are better, as there are multiprocessors without work."""
_MOST_SCRATCH_BYTES = 256 << 20
_EVEN, _ODD, _DIRECT = enumeration(__name__, "Mode", ("EVEN", "ODD", "DIRECT"))
"""Algorithms for spectra. The last is by definition, for lengths with large prime factors."""

_FOURIER = record("""spectrogram:Fourier {
    const FourierStep* steps;
    const float* cosines;
    const float* sines;
    int32 size, step_count;
}""")
_SETTINGS = record("""spectrogram:Settings {
    spectrogram:Fourier fourier;
    const int32* places;
    const float* joint_cosines;
    const float* joint_sines;
    const float* window;  // half of the weights
    const Range* ranges;
    const float* weights;
    int64 start, step;
    int32 length, window_length, bins, mode, reflect, squared, time_first, bands, in_decibels;
    int32 note_largest;
    decibels:DecibelScale scale;
}""")
_SAMPLE = record("spectrogram:Sample { uint64 source, out, largest, scratch; int64 size, frames; }")


class PackedArrays:
    """Several arrays that are uploaded together, once.

    Belongs to an instance of an operator, as `DeviceConstant` does.
    """

    __slots__ = ("_memory", "_offsets")

    def __init__(self, **arrays: np.ndarray) -> None:
        offsets, at = {}, 0
        for name, array in arrays.items():
            offsets[name] = at
            at += -(-array.nbytes // 16) * 16
        packed = np.zeros(at, np.uint8)
        for name, array in arrays.items():
            bytes_ = np.ascontiguousarray(array).reshape(-1).view(np.uint8)
            packed[offsets[name] : offsets[name] + bytes_.size] = bytes_
        self._memory = DeviceConstant(packed)
        self._offsets = offsets

    def addresses(self, queue: Queue) -> dict[str, int]:
        """Address of each array, for work of `queue`."""
        first = self._memory.address(queue)
        return {name: first + offset for name, offset in self._offsets.items()}


class DeviceBands:
    """A filter bank or cosine transform on the device."""

    __slots__ = ("_packed", "sums")

    def __init__(self, bands: Bands) -> None:
        self.sums = bands.sums
        self._packed = PackedArrays(ranges=bands.ranges, weights=bands.weights)

    def addresses(self, queue: Queue) -> dict[str, int]:
        """Of ``ranges`` and ``weights``."""
        return self._packed.addresses(queue)


class DevicePlan:
    """A `SpectrumPlan` on the device."""

    def __init__(self, plan: SpectrumPlan) -> None:
        self.plan = plan
        self.frames = plan.frames
        spectrum = plan.spectrum
        length = plan.length
        window = plan.frames.window * np.float32(0.5)
        if spectrum is None:
            angles = 2 * np.pi * np.arange(length) / length
            self._mode, self.size, steps = _DIRECT, length, 0
            self._packed = PackedArrays(
                cosines=np.cos(angles).astype(np.float32),
                sines=np.sin(angles).astype(np.float32),
                window=window,
            )
        else:
            transform = spectrum.transform
            self._mode = _EVEN if spectrum.is_even else _ODD
            self.size, steps = transform.size, len(transform.steps)
            self._packed = PackedArrays(
                steps=transform.steps.astype(np.int32),
                cosines=transform.cosines,
                sines=transform.sines,
                places=transform.places.astype(np.int32),
                joint_cosines=spectrum.cosines,
                joint_sines=spectrum.sines,
                window=window,
            )
        self._settings = np.zeros(1, _SETTINGS)
        settings = self._settings[0]
        fourier = settings["fourier"]
        fourier["size"], fourier["step_count"], settings["mode"] = self.size, steps, self._mode
        settings["length"], settings["bins"] = length, plan.bins
        settings["window_length"] = plan.frames.length
        settings["start"], settings["step"] = plan.frames.start, plan.frames.step
        settings["reflect"], settings["squared"] = plan.frames.reflect, plan.squared

        self._told: WeakKeyDictionary[Queue, tuple[Any, np.uint64, DeviceConstant]] = (
            WeakKeyDictionary()
        )
        """Last request and its result, by queue: each queue is used by one thread at a time."""

    def settings(
        self,
        queue: Queue,
        bands: DeviceBands | None,
        scale: DecibelScale | None,
        *,
        time_first: bool,
        note_largest: bool,
    ) -> np.uint64:
        """Address of the kernel's settings, for work of `queue`."""
        asked = (bands, scale, time_first, note_largest)
        told = self._told.get(queue)
        if told is not None and told[0] == asked:  # as in every iteration
            return told[1]
        settings = self._settings.copy()
        of_fourier = _FOURIER.names or ()
        for name, address in self._packed.addresses(queue).items():
            (settings["fourier"] if name in of_fourier else settings)[name] = address
        settings["time_first"], settings["note_largest"] = time_first, note_largest
        if bands is not None:
            settings["bands"] = bands.sums
            for name, address in bands.addresses(queue).items():
                settings[name] = address
        settings["in_decibels"] = scale is not None
        settings["scale"] = tuple(scale or NO_DECIBELS)
        constant = DeviceConstant(settings)
        place = np.uint64(constant.address(queue))
        self._told[queue] = asked, place, constant
        return place


def write_spectrograms(
    queue: Queue,
    plan: DevicePlan,
    signals: DeviceBatch,
    frame_counts: np.ndarray,
    out: DeviceBatch,
    *,
    time_first: bool,
    bands: DeviceBands | None = None,
    scale: DecibelScale | None = None,
    largest: np.ndarray | None = None,
) -> None:
    """Fill `out` with the spectrograms of `signals`, or with what is made of them.

    `frame_counts`: int64 ``(samples,)``, or ``(1,)`` where all signals are as long. `largest`:
    uint64 ``(samples,)``: addresses of float32 zeros to be made the largest value of each sample.
    """
    settings = plan.settings(
        queue, bands, scale, time_first=time_first, note_largest=largest is not None
    )
    samples = np.zeros(len(signals), _SAMPLE)
    shape = signals.uniform_shape
    sizes = signals.sizes() if shape is None else math.prod(shape)
    names = ["source", "out", "size", "frames"]
    columns: list[Any] = [signals.pointers, out.pointers, sizes, frame_counts]
    if largest is not None:
        names.append("largest")
        columns.append(largest)
    fill_fields(samples[names], *columns)
    most = _most(frame_counts)
    lanes = _lanes(plan.size, most * len(samples))
    if lanes:
        shared = 2 * plan.size * (lanes + 1 if lanes > 1 else 1) * 4
        _launch(queue, samples, settings, lanes, shared, most)
        return
    each = np.broadcast_to(frame_counts, len(samples)) * (2 * plan.size * 4)
    for part in _parts(each):
        group, needed = samples[part], each[part]
        begins = np.cumsum(needed) - needed
        first = queue.scratch(int(needed.sum()))
        group["scratch"] = (first + begins).astype(np.uint64)
        _launch(queue, group, settings, 1, 0, int(group["frames"].max()))


@traced
def _most(frame_counts: np.ndarray) -> int:
    return int(frame_counts.max())


def _launch(
    queue: Queue,
    samples: np.ndarray,
    settings: np.uint64,
    lanes: int,
    shared: int,
    most: int,
) -> None:
    blocks = -(-most // lanes)
    queue.launch(
        kernel("spectrogram.cu", "spectrogram", lanes, bool(shared)),
        (blocks * len(samples), 1, 1),
        (THREADS, 1, 1),
        queue.upload(samples),
        settings,
        queue.word(np.uint32, blocks),
        shared_bytes=shared,
    )


def _lanes(size: int, frames: int) -> int:
    """Frames that a block takes, of about so many; 0 where shared memory has no room for one."""
    found = 0
    for lanes in _LANES:
        if 2 * size * (lanes + 1 if lanes > 1 else 1) * 4 > _SHARED_BYTES:
            continue
        found = lanes
        # Half as many would leave threads without a step of the transform to do.
        if size * lanes < 8 * THREADS:
            break
        if frames // lanes >= _ENOUGH_BLOCKS:
            break
    return found


def _parts(needed_bytes: np.ndarray) -> list[slice]:
    """Runs of samples that do not need too much scratch memory together, of at least one each."""
    parts, begin, total = [], 0, 0
    for index, own in enumerate(needed_bytes.tolist()):
        if index > begin and total + own > _MOST_SCRATCH_BYTES:
            parts.append(slice(begin, index))
            begin, total = index, 0
        total += own
    parts.append(slice(begin, len(needed_bytes)))
    return parts
