"""`decoders.video`."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import (
    ArgumentValueError,
    BadSampleError,
    MisusedArgumentError,
    ShapeError,
    UsageError,
)
from headrace.kernels.gpu import transfer as _transfer
from headrace.operators.support.argument_types import (
    BoolArg,
    FloatArg,
    FloatListArg,
    IntArg,
    IntListArg,
)
from headrace.operators.support.operator import SampleContext, SampleOperator, operator
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.operators.support.video.audio import (
    AUDIO_ARGS,
    AUDIO_OUTPUTS,
    Span,
    audio_like,
    audio_of,
    audio_specs,
    check_audio,
    span_of,
)
from headrace.operators.support.video.color_space import COLOR_SPACE, is_tagged
from headrace.operators.support.video.lazy_clip import ClipSource, LazyClip
from headrace.operators.support.video.on_gpu import VideosToDevice, Wanted, in_threads
from headrace.operators.support.video.orientation import ADJUST_ORIENTATION, orientation_of
from headrace.operators.support.video.padding import (
    FILL_VALUE,
    fill_color,
    mode_of,
    pad_mode_arg,
    padded,
)
from headrace.types import DALIDataType

if TYPE_CHECKING:
    from headrace.kernels.cpu.video.frame_index import FrameIndex
    from headrace.operators.support.operator import BatchContext, HostBatch
    from headrace.tensors.gpu.batch import DeviceBatch

_ROI = ("start_frame", "sequence_length", "stride", "end_frame")
_PER_SAMPLE = ("frames", "timestamps", *_ROI, "fps", "pad_mode")


@operator(
    "decoders.video",
    old_names=("experimental.decoders.video",),
    inputs=Input(
        "encoded",
        "Encoded videos: all bytes of a file as a flat array.",
        dtypes=(DALIDataType.UINT8,),
        device="cpu",
    ),
    args=(
        Arg(
            "frames",
            IntListArg,
            None,
            "Numbers of the frames to decode, in any order. Excludes the four arguments below.",
            per_sample=True,
        ),
        Arg(
            "timestamps",
            FloatListArg,
            None,
            "Times in seconds, as `enable_timestamps` of readers gives them: the frames that are "
            "shown then are decoded. Excludes `frames` and all that follow.",
            per_sample=True,
        ),
        Arg(
            "start_frame",
            IntArg,
            None,
            "The first frame; 0 if not given. Frames before 0 are not there: see `pad_mode`.",
            per_sample=True,
        ),
        Arg(
            "end_frame",
            IntArg,
            None,
            "The frame after the last one; that of the video if not given.",
            per_sample=True,
        ),
        Arg(
            "sequence_length",
            IntArg,
            None,
            "How many frames there are, in place of `end_frame`.",
            per_sample=True,
        ),
        Arg("stride", IntArg, None, "Distance of frames; 1 if not given.", per_sample=True),
        Arg(
            "fps",
            FloatArg,
            None,
            "Frames a second, in place of `stride`: those that are shown at every ``1 / fps`` "
            "seconds from `start_frame` on. `sequence_length` counts them.",
            per_sample=True,
        ),
        pad_mode_arg("constant", "leaves them out, and raises where `frames` names them"),
        FILL_VALUE,
        COLOR_SPACE,
        ADJUST_ORIENTATION,
        *AUDIO_ARGS,
        Arg("build_index", BoolArg, True, "Scan the packets first; it is always done.", hint=True),
        Arg("affine", BoolArg, True, "Whether decoding threads are tied to cores.", hint=True),
    ),
    num_outputs=lambda args: 3 if args.get("enable_audio") else 1,
    output_docs=("The frames, RGB, in the layout FHWC.", *AUDIO_OUTPUTS),
    devices=("cpu", "mixed"),
    decodes_video=True,
)
class DecodeVideo(SampleOperator):
    """Decodes videos: H.264, HEVC, VP8, VP9, AV1, MPEG-4, Motion JPEG and what else FFmpeg knows.

    All frames of a GIF or an animated WebP are decoded, too; the latter needs Pillow, which
    ``pip install 'headrace[images]'`` brings.

    It needs the library PyAV, which ``pip install 'headrace[video]'`` brings. Colours are those of
    ITU-R BT.601, where `color_space` does not say otherwise. With ``device="mixed"`` the GPU's
    decoders do what they can, where PyNvVideoCodec is installed, and the CPU the rest.

    Examples
    --------
    >>> encoded, labels = fn.readers.file(file_root="clips", file_filters=["*.mp4"])
    >>> frames = fn.decoders.video(encoded, start_frame=10, sequence_length=16)
    """

    def infer(self, encoded: Spec) -> tuple[Spec, ...]:
        from headrace.kernels.cpu.video.colors import Colors
        from headrace.kernels.cpu.video.pool import open_video

        if encoded.ndim not in (None, 1):
            raise ShapeError(
                f"Encoded video must be flat arrays of bytes, got {encoded.ndim}-dimensional data."
            )
        if self.given("timestamps") and any(map(self.given, ("frames", *_ROI, "fps"))):
            raise MisusedArgumentError(
                "`timestamps` excludes `frames`, `start_frame`, `end_frame`, `sequence_length`, "
                "`stride` and `fps`."
            )
        if self.given("fps") and any(map(self.given, ("frames", "stride"))):
            raise MisusedArgumentError("`fps` excludes `frames` and `stride`.")
        if self.given("frames") and any(map(self.given, _ROI)):
            raise UsageError(
                "Cannot specify both `frames` and any of `start_frame`, `sequence_length`, "
                "`stride`, `end_frame` arguments."
            )
        if self.given("sequence_length") and self.given("end_frame"):
            raise UsageError(
                "Cannot specify both `sequence_length` and `end_frame` arguments; the one follows "
                "from the other."
            )
        if "pad_mode" not in self.tensor_args:
            mode_of(self.args.pad_mode)
        self._video = open_video
        self._colors = Colors("RGB", tagged=is_tagged(self.args))
        self._fill = fill_color(self.args.fill_value, 3)
        self._to_device = VideosToDevice(self._colors, np.dtype(np.uint8), self._fill)
        check_audio(self.args)
        return (Spec(DALIDataType.UINT8, 4, "FHWC"), *audio_specs(self.args))

    returns_lazy = (LazyClip,)

    def cpu(self, c: SampleContext, encoded: np.ndarray) -> tuple[Any, ...]:
        from headrace.kernels.cpu.video.frame_reader import upright_colors

        with ExitStack() as stack:
            video = stack.enter_context(self._opened(encoded.reshape(-1)))
            numbers = _numbers(c.args, video.index)
            orientation = orientation_of(video, c.args)
            size = video.size(orientation)
            sound = audio_of(video, c.args, _span(c.args, video.index, numbers))
            held = _Held(stack.pop_all(), video, lambda: self._opened(encoded.reshape(-1)))
        colors = upright_colors(self._colors, orientation)
        source = ClipSource(c, held.opened, colors, self._fill, size)
        shape = len(numbers), *size, self._colors.channels
        return (LazyClip(source, numbers, (0, 0), shape, np.dtype(np.uint8)), *sound)

    def gpu(self, c: BatchContext, encoded: HostBatch) -> tuple[DeviceBatch, ...]:
        each = {name: c.values(name) for name in _PER_SAMPLE if name in self.tensor_args}

        def look(k: int) -> tuple[Wanted, list[np.ndarray]]:
            own = {n: values[k] for n, values in each.items()}
            args = SimpleNamespace(**{**vars(self.args), **own})
            data = encoded.rows[k].reshape(-1)
            with self._opened(data) as video:
                numbers = _numbers(args, video.index)
                sound = audio_of(video, args, _span(args, video.index, numbers))
                orientation = orientation_of(video, args)
                height, width = video.size(orientation)
                return Wanted(data, numbers, height, width, orientation, video.index), sound

        found = in_threads(c, look)
        wanted = [each if isinstance(each, Exception) else each[0] for each in found]
        frames = self._to_device.decode(c, wanted)
        if not self.args.enable_audio:
            return (frames,)
        silence = audio_like(self.args)
        sounds = [silence if isinstance(each, Exception) else each[1] for each in found]
        columns: Any = zip(*sounds, strict=True)
        return (frames, *[_transfer.to_device(c.queue, list(column), None) for column in columns])

    @contextmanager
    def _opened(self, encoded: np.ndarray) -> Iterator[Any]:
        """The video that these bytes are."""
        video = self._video(encoded)
        try:
            if video.missing:
                raise BadSampleError(
                    f"The video is cut off: {video.missing} of "
                    f"{len(video.index) + video.missing} frames are missing."
                )
            yield video
        finally:
            video.close()


class _Held:
    """A video that stays open until its frames are read, which nearly always happens once."""

    def __init__(
        self, stack: ExitStack, video: Any, again: Callable[[], AbstractContextManager[Any]]
    ) -> None:
        self._stack, self._video, self._again = stack, video, again

    @contextmanager
    def opened(self, number: int) -> Iterator[Any]:
        """The video, which is closed afterwards."""
        video, self._video = self._video, None
        with self._stack.pop_all():
            if video is not None:
                yield video
                return
        with self._again() as video:
            yield video


def _span(args: Any, index: FrameIndex, numbers: np.ndarray) -> Span:
    """The time of the frames of these numbers."""
    count = len(index)
    if args.frames is not None or args.timestamps is not None:
        there = numbers[(numbers >= 0) & (numbers < count)]
        first, last = (there.min(), there.max() + 1) if there.size else (0, 0)
        return span_of(index, int(first), int(last), 0, count, None)
    start = args.start_frame or 0
    last = len(numbers) * (args.stride or 1)
    return span_of(index, 0, last, start, count, args.fps)


def _numbers(args: Any, index: FrameIndex) -> np.ndarray:
    """The frames of a video that arguments ask for; negative where it has none to show."""
    mode, count = mode_of(args.pad_mode), len(index)
    if args.frames is not None or args.timestamps is not None:
        if args.frames is not None:
            numbers = np.array(args.frames, np.int64)
        else:
            numbers = index.shown_at(np.array(args.timestamps, np.float64))
        outside = numbers[(numbers < 0) | (numbers >= count)]
        if mode == "none" and outside.size:
            raise _outside(int(outside[0]), count)
        return numbers if mode == "none" else padded(numbers, count, mode)
    start = 0 if args.start_frame is None else args.start_frame
    stride = 1 if args.stride is None else args.stride
    if start >= count:
        raise ArgumentValueError(
            f"Start frame {start} is out of bounds, expected range [0, {count})."
        )
    if stride < 1:
        raise ArgumentValueError(f"`stride` is {stride}, but must be at least 1.")
    if args.fps is not None:
        return _of_rate(args, index, start, mode)
    if args.sequence_length is not None:
        if args.sequence_length < 0:
            raise ArgumentValueError(
                f"`sequence_length` is {args.sequence_length}, but cannot be negative."
            )
        numbers = start + stride * np.arange(args.sequence_length, dtype=np.int64)
    else:
        end = count if args.end_frame is None else args.end_frame
        if end <= start:
            raise ArgumentValueError(
                f"end_frame ({end}) must be greater than start_frame ({start})."
            )
        numbers = np.arange(start, end, stride, dtype=np.int64)
    if mode != "none":
        return padded(numbers, count, mode)
    if numbers.size and numbers[0] < 0:
        raise _outside(int(numbers[0]), count)
    return numbers[numbers < count]


def _of_rate(args: Any, index: FrameIndex, start: int, mode: str) -> np.ndarray:
    """The frames that are shown at every ``1 / fps`` seconds."""
    if not args.fps > 0:
        raise ArgumentValueError(f"`fps` is {args.fps}, but must be positive.")
    count = len(index)
    end = count if args.end_frame is None else args.end_frame
    begin, last = index.times(np.array([max(start, 0), end])).tolist()
    length = args.sequence_length
    if length is None:
        length = math.ceil((last - begin) * args.fps - 1e-6)
    numbers = index.shown_at(begin + np.arange(max(length, 0)) / args.fps)
    return numbers[numbers < count] if mode == "none" else padded(numbers, count, mode)


def _outside(number: int, count: int) -> ArgumentValueError:
    return ArgumentValueError(
        f"Unexpected out-of-bounds frame index {number} for pad_mode = 'none': the video has "
        f"frames 0 to {count - 1}. Another `pad_mode` says what stands for it."
    )
