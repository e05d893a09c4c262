"""Small videos, written by PyAV when a test asks for them."""

from __future__ import annotations

import io
from fractions import Fraction

import numpy as np


def picture(number, height, width, seed=0):
    """An RGB picture with edges and colours that move with `number`, uint8 ``(H, W, 3)``."""
    y, x = np.mgrid[:height, :width]
    step = number * 5 + seed * 37
    planes = (x * 3 + step, y * 4 - step, (x + y) * 2 + 2 * step)
    found = np.stack([128 + 120 * np.sin(p / 19) for p in planes], -1)
    at = (number * 7 + seed) % max(width - 8, 1)
    found[2:10, at : at + 8] = (255, 20 * number % 256, 0)
    return found.clip(0, 255).astype(np.uint8)


def write_video(
    target=None,
    *,
    frames=24,
    size=(48, 64),
    codec="libx264",
    container="mp4",
    pix_fmt="yuv420p",
    rate=Fraction(24),
    times=None,
    options=None,
    gop=8,
    full_range=False,
    colorspace=None,
    seed=0,
    time_base=None,
    container_options=None,
    sound=None,
):
    """Write a video to the path `target`, or return its bytes.

    `times` are presentation times in units of `time_base`, for a variable frame rate. `sound` is
    the codec of the `tone` that goes with it.
    """
    import av

    buffer = io.BytesIO() if target is None else str(target)
    with av.open(buffer, "w", format=container, options=container_options or {}) as output:
        stream = output.add_stream(codec, rate=rate, options=dict(options or {}))
        stream.height, stream.width = size
        stream.pix_fmt = pix_fmt
        stream.gop_size = gop
        if full_range:
            stream.codec_context.color_range = 2
        if colorspace is not None:
            stream.codec_context.colorspace = colorspace
        if time_base is not None:
            stream.codec_context.time_base = time_base
        if sound is not None:
            tones = output.add_stream(sound, rate=48000, layout="stereo")
            tones.bit_rate = 256000
            samples = tone(np.arange(round(frames / rate * 48000)) / 48000)
        for number in range(frames):
            frame = av.VideoFrame.from_ndarray(picture(number, *size, seed), "rgb24")
            range_ = "JPEG" if full_range else None
            frame = frame.reformat(
                format=pix_fmt, dst_colorspace=colorspace, dst_color_range=range_
            )
            frame.pts = number if times is None else times[number]
            frame.time_base = time_base or 1 / Fraction(rate)
            output.mux(stream.encode(frame))
        output.mux(stream.encode())
        if sound is not None:
            for packet in _sound_packets(tones, samples):
                output.mux(packet)
    return buffer.getvalue() if target is None else str(target)


MATRICES = {
    1: (1, 0, 0, 1),
    2: (-1, 0, 0, 1),
    3: (-1, 0, 0, -1),
    4: (1, 0, 0, -1),
    5: (0, 1, 1, 0),
    6: (0, 1, -1, 0),
    7: (0, -1, -1, 0),
    8: (0, -1, 1, 0),
}
"""By EXIF's number of a turn: where the axes of the stored picture, x and y, go."""


def turned(data, orientation):
    """The bytes of an MP4 or MOV file that asks for its pictures to be turned, as phones do."""
    at = data.index(b"tkhd") + 4
    matrix = at + (52 if data[at] else 40)
    a, b, c, d = (n << 16 for n in MATRICES[orientation])
    numbers = np.array([a, b, 0, c, d, 0, 0, 0, 1 << 30], ">i4").tobytes()
    return data[:matrix] + numbers + data[matrix + len(numbers) :]


def tone(seconds):
    """Two channels of rising tones at these times, float32 ``(times, 2)``."""
    phases = [2 * np.pi * (f * seconds + 90 * seconds**2) for f in (300, 500)]
    return (0.5 * np.sin(np.stack(phases, -1))).astype(np.float32)


def _sound_packets(stream, samples):
    """Packets of `samples`, float32 ``(samples, channels)``."""
    import av

    context = stream.codec_context
    kind = context.format.name
    if kind[:3] in ("s16", "s32"):
        most = np.iinfo(f"int{kind[1:3]}").max
        samples = np.round(samples.astype(np.float64) * most).astype(f"int{kind[1:3]}")
    size = context.frame_size or 1024
    for begin in range(0, len(samples), size):
        part = samples[begin : begin + size]
        part = part.T if kind.endswith("p") else part.reshape(1, -1)
        frame = av.AudioFrame.from_ndarray(np.ascontiguousarray(part), kind, "stereo")
        frame.sample_rate, frame.pts, frame.time_base = 48000, begin, Fraction(1, 48000)
        yield from stream.encode(frame)
    yield from stream.encode()
