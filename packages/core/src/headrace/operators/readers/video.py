"""`experimental.readers.video`, `readers.video` and `readers.video_resize`: sequences of frames."""

from __future__ import annotations

import warnings
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError, DataTypeError
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import Index
from headrace.operators.readers.video_listing import (
    BAD,
    ROUNDINGS,
    Part,
    SequencePattern,
    VideoIndex,
    frame_bounds,
    index_of,
    listed,
    local,
    scan,
    time_bounds,
)
from headrace.operators.support.argument_types import (
    ArgType,
    BoolArg,
    DataTypeArg,
    ImageTypeArg,
    IntArg,
    IntListArg,
    PathArg,
    PathListArg,
    StringArg,
)
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.resize.request import RESIZE_ARGS, ResizeRequest
from headrace.operators.support.resize.resampling import RESAMPLING_ARGS, Resampling
from headrace.operators.support.resize.sample import SampleResampler
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.operators.support.video.color_space import COLOR_SPACE, is_tagged
from headrace.operators.support.video.padding import (
    FILL_VALUE,
    fill_color,
    mode_of,
    pad_mode_arg,
    padded,
)
from headrace.types import DALIDataType, DALIImageType, to_numpy_type

_FRAME_NUMBERS = ("none", "scalar", "sequence")
_SCAN_THREADS = 4


def _frame_num(value: Any) -> str:
    if isinstance(value, (bool, np.bool_)):
        return "scalar" if value else "none"
    text: str = StringArg.constant(value)
    return {"true": "scalar", "false": "none"}.get(text.lower(), text)


_FRAME_NUM_TYPE = ArgType("str or bool", "str | bool", _frame_num)


def _labelled(args: dict[str, Any]) -> bool:
    return bool(args.get("file_list") or args.get("file_root")) or args.get("labels") is not None


def _numbered(args: dict[str, Any]) -> bool:
    return _frame_num(args.get("enable_frame_num") or False) != "none"


def _count_outputs(args: dict[str, Any]) -> int:
    return 1 + _labelled(args) + _numbered(args) + bool(args.get("enable_timestamps"))


_COMMON_ARGS = (
    Arg("sequence_length", IntArg, REQUIRED, "Frames of a sequence."),
    Arg("filenames", PathListArg, (), "The videos to read, in this order."),
    Arg(
        "labels",
        IntListArg,
        None,
        "Labels of `filenames`; an empty list numbers them. Without it they have none.",
    ),
    Arg(
        "file_root",
        PathArg,
        "",
        "Directory whose sub-directories are the classes; their numbers are the labels of the "
        "videos in them.",
    ),
    Arg(
        "file_list",
        PathArg,
        "",
        'Text file with lines "name label" or "name label begin end", the latter of which take a '
        "part of a video. Negative numbers count from its end.",
    ),
    Arg("stride", IntArg, 1, "Distance of the frames of a sequence."),
    Arg(
        "step",
        IntArg,
        -1,
        "Distance of the first frames of sequences; by default each begins after the one before.",
    ),
    Arg(
        "enable_frame_num",
        _FRAME_NUM_TYPE,
        "none",
        'Whether there is an output for numbers of frames: ``"none"``; ``"scalar"`` or `True`, '
        'that of the first one; ``"sequence"``, those of all.',
        choices=_FRAME_NUMBERS,
    ),
    Arg(
        "enable_timestamps",
        BoolArg,
        False,
        "Whether there is an output for the times of the frames, in seconds.",
    ),
    Arg(
        "image_type",
        ImageTypeArg,
        DALIImageType.RGB,
        "Colours of the frames: `RGB`, `YCbCr` (ITU-R BT.601, of limited range) or `GRAY`.",
    ),
    COLOR_SPACE,
)
_OUTPUTS = (
    "The frames, in the layout FHWC.",
    "With labels: the label, int32, shape (1,).",
    "With `enable_frame_num`: number of the first frame or of each, int32; -1 if it is not there.",
    "With `enable_timestamps`: times of the frames in seconds, float64; -1 if one is not there.",
)


class VideoReader(Reader):
    """Shared code of the readers of videos."""

    plans_values = True
    _spec: Spec

    @classmethod
    def has_cpu(cls) -> bool:
        """True: the CPU decodes."""
        return True

    def check(self) -> None:
        """Check the arguments; no data is needed."""
        super().check()
        args = self.args
        for name in ("sequence_length", "stride"):
            if getattr(args, name) < 1:
                raise ArgumentValueError(
                    f"`{name}` is {getattr(args, name)}, but must be at least 1."
                )
        kind = args.image_type.name
        if kind not in ("RGB", "YCbCr", "GRAY"):
            raise ArgumentValueError(
                f"Invalid image type: `image_type` is {kind}; it can be RGB, YCbCr or GRAY."
            )

    def list_entries(self) -> Index:
        parts, self._has_labels = listed(self.args)
        found = index_of(
            parts,
            scan(parts, _SCAN_THREADS),
            self._wanted(),
            self._bounds(),
            constant_rate=not getattr(self.args, "skip_vfr_check", True),
        )
        for part in self._left_out(found):
            warnings.warn(
                f"`{self.schema.name}`: line {part.line} of `file_list` names a part of "
                f"{part.path} in which there is no frame; it is skipped.",
                UserWarning,
                stacklevel=2,
            )
        return found

    def _left_out(self, found: VideoIndex) -> list[Part]:
        """Parts that have no frame."""
        limits = self._bounds()
        bounded = [
            (part, *limits(part, fact))
            for part, fact in zip(found.parts, found.facts, strict=True)
            if part.begin is not None and not fact.failure
        ]
        return [part for part, begin, end in bounded if begin >= end]

    def _wanted(self) -> SequencePattern:
        raise NotImplementedError

    def _bounds(self) -> Any:
        raise NotImplementedError

    def _mode(self, name: str | None) -> str:
        raise NotImplementedError

    @property
    def _fill_value(self) -> tuple[int, ...]:
        return (0,)

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        from headrace.kernels.cpu.video.colors import Colors

        args = self.args
        self._dtype = np.dtype(to_numpy_type(getattr(args, "dtype", DALIDataType.UINT8)))
        scale = 1 / 255 if getattr(args, "normalized", False) else 1.0
        self._colors: Any = Colors(args.image_type.name, scale, tagged=is_tagged(args))
        self._fill = fill_color(self._fill_value, self._colors.channels)
        self._uniform = getattr(args, "uniform_sample", False)
        specs = [Spec(getattr(args, "dtype", DALIDataType.UINT8), 4, "FHWC")]
        if self._has_labels:
            specs.append(Spec(DALIDataType.INT32, 1))
        if args.enable_frame_num != "none":
            specs.append(Spec(DALIDataType.INT32, 1))
        if args.enable_timestamps:
            specs.append(Spec(DALIDataType.FLOAT64, 1))
        return tuple(specs)

    def plan(self, c: PlanContext, *data: Samples) -> Planned:
        args, index = self.args, self.index
        assert isinstance(index, VideoIndex)
        modes: list[Any] = [None] * c.size
        if hasattr(args, "pad_mode"):
            modes = c.values("pad_mode")
        length = args.sequence_length
        numbers, shapes = [], np.zeros((c.size, 4), np.int64)
        files = [int(row[0]) for row in data[0].rows]
        for k, row in enumerate(data[0].rows):
            file, start, begin, end = map(int, row)
            fact = index.facts[file]
            if start == BAD:
                raise BadSampleError(_failure(fact))
            numbers.append(self._frames(start, begin, end, modes[k]))
            shapes[k] = length, fact.height, fact.width, self._colors.channels
        others = [np.full((c.size, 1), 1, np.int64)] * self._has_labels
        if args.enable_frame_num != "none":
            one = args.enable_frame_num == "scalar"
            others.append(np.full((c.size, 1), 1 if one else length, np.int64))
        if args.enable_timestamps:
            others.append(np.full((c.size, 1), length, np.int64))
        return Planned((shapes, *others), (files, numbers))

    def _frames(self, start: int, begin: int, end: int, mode: str | None) -> np.ndarray:
        """The frames of a sequence; -1 for those that are filled."""
        length = self.args.sequence_length
        numbers: np.ndarray
        if self._uniform:
            steps = max(length - 1, 1)
            places = np.arange(length) * (end - begin - 1)
            numbers = begin + (2 * places + steps) // (2 * steps)
            return numbers
        numbers = start + self.args.stride * np.arange(length, dtype=np.int64)
        if numbers[-1] < end:
            return numbers
        mode = self._mode(mode)
        if mode == "none":
            raise ArgumentValueError(
                f"Unexpected out-of-bounds frame index {numbers[-1]} for pad_mode = 'none': the "
                f"part of the video ends at frame {end}. Another `pad_mode` says what stands for "
                "frames that are not there."
            )
        found = padded(numbers - begin, end - begin, mode)
        return np.where(found < 0, -1, found + begin)

    def cpu(self, c: SampleContext, *data: np.ndarray) -> tuple[np.ndarray, ...]:
        from headrace.kernels.cpu.video.pool import opened

        args, index = self.args, self.index
        assert isinstance(index, VideoIndex)
        file, numbers = c.row
        numbers = np.asarray(numbers)
        out = c.empty(c.shape, self._dtype)
        out[numbers < 0] = self._fill * (self._dtype.type(1 / 255) if self._normalized else 1)
        part, fact = index.parts[file], index.facts[file]
        first = int(numbers[0])
        with opened(local(part.path), first) as video:
            if (video.height, video.width) != (fact.height, fact.width):
                raise BadSampleError(
                    f"The video has {video.height} x {video.width} pixels, and had {fact.height} x "
                    f"{fact.width} when it was listed: the file has changed."
                )
            video.read(numbers.tolist(), out, self._writer(c))
        found = [out]
        if self._has_labels:
            found.append(np.array([part.label], np.int32))
        if args.enable_frame_num != "none":
            shown = numbers[:1] if args.enable_frame_num == "scalar" else numbers
            found.append(shown.astype(np.int32))
        if args.enable_timestamps:
            found.append(np.where(numbers < 0, -1.0, fact.seconds[numbers]))
        return tuple(found)

    @property
    def _normalized(self) -> bool:
        return bool(getattr(self.args, "normalized", False))

    def _writer(self, c: SampleContext) -> Any:
        """Function that turns a decoded frame into one of the output."""
        return self._colors


def _failure(fact: Any) -> str:
    if fact.failure:
        return f"{fact.failure.rstrip('.')}."
    return (
        f"The file is cut off: {fact.missing} of {fact.count + fact.missing} frames are missing, "
        f"from frame {fact.count} on."
    )


@reader(
    "experimental.readers.video",
    epoch_shuffle=False,
    args=(
        *_COMMON_ARGS,
        Arg(
            "file_list_format",
            StringArg,
            "timestamps",
            'What beginnings and ends in `file_list` are: ``"timestamps"``, in seconds, or '
            '``"frames"``, numbers of frames.',
            choices=("timestamps", "frames"),
        ),
        Arg(
            "file_list_include_end",
            BoolArg,
            True,
            "Has no effect, as in DALI 2.4: the frame that an end names is not a part.",
            hint=True,
        ),
        Arg(
            "file_list_rounding",
            StringArg,
            "start_down_end_up",
            'Which frames times between two become: ``"start_down_end_up"``, '
            '``"start_up_end_down"``, ``"all_up"`` or ``"all_down"``.',
            choices=tuple(ROUNDINGS),
        ),
        pad_mode_arg("none", "leaves sequences out that are not whole"),
        FILL_VALUE,
        Arg(
            "uniform_sample",
            BoolArg,
            False,
            "Whether each video, or part of one, is one sequence, with frames at even distances "
            "from its first to its last. `stride`, `step` and `pad_mode` then have no effect.",
        ),
    ),
    devices=("cpu", "gpu"),
    num_outputs=_count_outputs,
    output_docs=_OUTPUTS,
)
class ExperimentalVideoReader(VideoReader):
    """Reads sequences of frames from videos: H.264, HEVC, VP8, VP9, AV1, MPEG-4, Motion JPEG, ...

    It needs the library PyAV, which ``pip install 'headrace[video]'`` brings. The CPU decodes;
    with ``device="gpu"`` frames are uploaded. Colours are those of ITU-R BT.601.

    Examples
    --------
    >>> video, labels = fn.experimental.readers.video(
    ...     file_root="clips", sequence_length=16, stride=2, random_shuffle=True
    ... )
    """

    def check(self) -> None:
        """Check the arguments; no data is needed."""
        super().check()
        if "pad_mode" not in self.tensor_args:
            mode_of(self.args.pad_mode)
        if self.args.uniform_sample:
            pads = "pad_mode" in self.tensor_args or self.args.pad_mode != "none"
            given = {"stride": self.args.stride != 1, "step": self.args.step > 0, "pad_mode": pads}
            for name in [name for name, is_given in given.items() if is_given]:
                warnings.warn(
                    f"`{self.schema.name}`: with `uniform_sample` the argument `{name}` is "
                    "ignored; frames are repeated where a video has fewer than `sequence_length`.",
                    UserWarning,
                    stacklevel=2,
                )

    @property
    def _fill_value(self) -> tuple[int, ...]:
        return self.args.fill_value if self._pads else (0,)

    @property
    def _pads(self) -> bool:
        return "pad_mode" in self.tensor_args or mode_of(self.args.pad_mode) != "none"

    def _wanted(self) -> SequencePattern:
        args = self.args
        span = args.stride * args.sequence_length
        step = args.step if args.step > 0 else span
        uniform = args.uniform_sample
        return SequencePattern(args.sequence_length, args.stride, step, span, self._pads, uniform)

    def _bounds(self) -> Any:
        if self.args.file_list_format == "frames":
            return frame_bounds
        return time_bounds(self.args.file_list_rounding)

    def _mode(self, name: str | None) -> str:
        return mode_of(name or "none")


_PLAIN_ARGS = (
    *_COMMON_ARGS,
    Arg(
        "file_list_frame_num",
        BoolArg,
        False,
        "Whether beginnings and ends in `file_list` are numbers of frames, not seconds.",
    ),
    Arg(
        "file_list_include_preceding_frame",
        BoolArg,
        False,
        "Whether a beginning between two frames becomes the earlier one and an end the later one, "
        "not the other way round.",
    ),
    Arg(
        "pad_sequences",
        BoolArg,
        False,
        "Whether a sequence at the end of a video that is not whole is filled with black frames, "
        "not left out.",
    ),
    Arg(
        "skip_vfr_check",
        BoolArg,
        False,
        "Whether videos are read whose frame rate varies, which are bad samples otherwise.",
    ),
    Arg("normalized", BoolArg, False, "Whether values are 0 to 1, not 0 to 255; needs `FLOAT`."),
    Arg(
        "channels",
        IntArg,
        3,
        "Number of channels, which follows from `image_type`.",
    ),
    Arg("additional_decode_surfaces", IntArg, 2, "Surfaces of the GPU's decoder.", hint=True),
)
_DTYPE = Arg(
    "dtype",
    DataTypeArg,
    DALIDataType.UINT8,
    "Element type of the frames: `UINT8` or `FLOAT`.",
)


class PlainVideoReader(VideoReader):
    """Shared code of `readers.video` and `readers.video_resize`."""

    def check(self) -> None:
        """Check the arguments; no data is needed."""
        super().check()
        args = self.args
        if args.dtype not in (DALIDataType.UINT8, DALIDataType.FLOAT):
            raise DataTypeError(f"`dtype` must be UINT8 or FLOAT, got {args.dtype.name}.")
        if args.normalized and args.dtype != DALIDataType.FLOAT:
            raise ArgumentValueError(
                "`normalized` frames have values from 0 to 1 and need `dtype=types.FLOAT`."
            )
        channels = 1 if args.image_type.name == "GRAY" else 3
        if args.channels not in (3, channels):
            raise ArgumentValueError(
                f"`channels` is {args.channels}, and {args.image_type.name} has {channels}."
            )

    def _wanted(self) -> SequencePattern:
        args = self.args
        span = args.stride * (args.sequence_length - 1) + 1
        step = args.step if args.step > 0 else args.stride * args.sequence_length
        return SequencePattern(args.sequence_length, args.stride, step, span, args.pad_sequences)

    def _bounds(self) -> Any:
        if self.args.file_list_frame_num:
            return frame_bounds
        outwards = self.args.file_list_include_preceding_frame
        return time_bounds("start_down_end_up" if outwards else "start_up_end_down")

    def _mode(self, name: str | None) -> str:
        return "constant"


@reader(
    "readers.video",
    old_names=("video_reader",),
    epoch_shuffle=False,
    args=(*_PLAIN_ARGS, _DTYPE),
    devices=("cpu", "gpu"),
    num_outputs=_count_outputs,
    output_docs=_OUTPUTS,
)
class ReadersVideo(PlainVideoReader):
    """Reads sequences of frames from videos: H.264, HEVC, VP8, VP9, AV1, MPEG-4, Motion JPEG, ...

    It needs the library PyAV, which ``pip install 'headrace[video]'`` brings. The CPU decodes;
    with ``device="gpu"`` frames are uploaded. Colours are those of ITU-R BT.601.

    Examples
    --------
    >>> video, labels = fn.readers.video(file_root="clips", sequence_length=16, device="gpu")
    """


@reader(
    "readers.video_resize",
    old_names=("video_reader_resize",),
    epoch_shuffle=False,
    args=(
        *_PLAIN_ARGS,
        _DTYPE,
        *RESIZE_ARGS,
        *[arg for arg in RESAMPLING_ARGS if arg.name != "dtype"],
    ),
    devices=("cpu", "gpu"),
    num_outputs=_count_outputs,
    output_docs=_OUTPUTS,
)
class ReadersVideoResize(PlainVideoReader):
    """Reads sequences of frames from videos, and resizes the frames as `resize` does.

    It is `readers.video` with the arguments of `resize`; each frame is resized as soon as it is
    decoded.

    Examples
    --------
    >>> video = fn.readers.video_resize(filenames=["a.mp4"], sequence_length=16, size=(224, 224))
    """

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        specs = super().infer(*data)
        self._read_as = self._dtype if self._normalized else np.dtype(np.uint8)
        read = DALIDataType.FLOAT if self._normalized else DALIDataType.UINT8
        self._request = ResizeRequest(self, 2)
        self._resampling = Resampling(self, read)
        self._resampler = SampleResampler("HWC")
        return specs

    def plan(self, c: PlanContext, *data: Samples) -> Planned:
        planned = super().plan(c, *data)
        extents = np.ascontiguousarray(planned.shapes[0][:, 1:3].T)
        axes = self._request.plan(c, extents, self._resampling.filters(c))
        shapes = planned.shapes[0].copy()
        shapes[:, 1:3] = axes["length"].T
        files, numbers = planned.table
        sources = planned.shapes[0][:, 1:3]
        return Planned((shapes, *planned.shapes[1:]), (files, numbers, axes.T, sources))

    def cpu(self, c: SampleContext, *data: np.ndarray) -> tuple[np.ndarray, ...]:
        return super().cpu(_Row(c), *data)  # type: ignore[arg-type]

    def _writer(self, c: SampleContext) -> Any:
        return _Resized(self, c)


class _Row:
    """A `SampleContext` whose row is that of a reader that does not resize."""

    def __init__(self, c: SampleContext) -> None:
        self._c = c
        self.row = c.row[:2]
        self.resized = c.row[2:]
        self.shape, self.empty, self.temp = c.shape, c.empty, c.temp


class _Resized:
    """Writes frames resized."""

    def __init__(self, op: Any, c: Any) -> None:
        self._op, self._c = op, c
        self._axes, (height, width) = c.resized
        self._frame = c.temp((height, width, op._colors.channels), op._read_as)

    def write(self, frame: Any, out: np.ndarray) -> None:
        """Fill `out` with a `VideoFrame`."""
        op = self._op
        op._colors.write(frame, self._frame)
        resampling = op._resampling
        op._resampler.run(
            self._c, self._frame, self._axes, resampling.antialias, out, resampling.rounds_to
        )
