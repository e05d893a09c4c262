"""`experimental.readers.video`, `readers.video` and `readers.video_resize`: sequences of frames."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError, MisusedArgumentError
from headrace.kernels.cpu.random import sample_uniforms
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import Index
from headrace.operators.readers.remote_video import contents
from headrace.operators.readers.video_arguments import COMMON_ARGS, OUTPUTS, count_outputs
from headrace.operators.readers.video_description import (
    DESCRIBES,
    described,
    described_bytes,
)
from headrace.operators.readers.video_listing import (
    BAD,
    DRAWN,
    ROUNDINGS,
    Facts,
    Part,
    SequencePattern,
    VideoIndex,
    count_of,
    frame_bounds,
    index_of,
    listed,
    scan,
    time_bounds,
)
from headrace.operators.support.argument_types import BoolArg, StringArg
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Arg, Spec
from headrace.operators.support.video.audio import Span, audio_of, audio_specs, check_audio, span_of
from headrace.operators.support.video.color_space import is_tagged
from headrace.operators.support.video.lazy_clip import ClipSource, LazyClip
from headrace.operators.support.video.on_gpu import has_changed
from headrace.operators.support.video.padding import (
    FILL_VALUE,
    fill_color,
    mode_of,
    pad_mode_arg,
    padded,
)
from headrace.tracebacks import stack_level
from headrace.types import DALIDataType, to_numpy_type


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
        check_audio(args)
        self._check_choice()

    def _check_choice(self) -> None:
        """Check the arguments that say which frames are read."""
        args = self.args
        given = [n for n in ("frames", "timestamps", "clips_per_video", "fps") if self.given(n)]
        others = {
            "frames": ("timestamps", "clips_per_video", "fps", "stride", "step", "uniform_sample"),
            "timestamps": ("clips_per_video", "fps", "stride", "step", "uniform_sample"),
            "clips_per_video": ("step", "uniform_sample"),
            "fps": ("uniform_sample",),
        }
        usual = {"stride": 1, "step": -1, "uniform_sample": False}
        for name in given:
            beside = [
                n
                for n in others[name]
                if (n in given if n not in usual else getattr(args, n, usual[n]) != usual[n])
            ]
            if beside:
                raise MisusedArgumentError(
                    f"`{name}` and `{beside[0]}` both say which frames are read: give one of them."
                )
        if args.fps is not None and not 0 < args.fps < 1e6:
            raise ArgumentValueError(f"`fps` is {args.fps:g}, but must be positive.")
        if args.clips_per_video is not None and args.clips_per_video < 1:
            raise ArgumentValueError(
                f"`clips_per_video` is {args.clips_per_video}, but must be at least 1."
            )
        if args.clip_starts != "uniform" and args.clips_per_video is None:
            raise MisusedArgumentError(
                "`clip_starts` is about `clips_per_video`, how many sequences of each video are "
                "read: give it, too."
            )

    @property
    def _chosen(self) -> str | None:
        """The argument that names the frames of each sample, if one does."""
        return next((n for n in ("frames", "timestamps") if self.given(n)), None)

    def list_entries(self) -> Index:
        parts, self._has_labels = listed(self.args)
        found = index_of(
            parts,
            scan(parts, sound=self.args.enable_audio, turns=self.args.adjust_orientation),
            self._pattern(),
            self._bounds(),
            constant_rate=not getattr(self.args, "skip_vfr_check", True),
        )
        for part in self._left_out(found):
            warnings.warn(
                f"`{self.schema.name}`: line {part.line} of `file_list` names a part of "
                f"{part.path} in which there is no frame; it is skipped.",
                UserWarning,
                stacklevel=stack_level(),
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

    def _pattern(self) -> SequencePattern:
        args = self.args
        wanted = self._wanted()
        return wanted._replace(
            uniform=wanted.uniform or self._chosen is not None,
            fps=args.fps,
            clips=args.clips_per_video or 0,
            draws=args.clip_starts == "random",
        )

    def _wanted(self) -> SequencePattern:
        raise NotImplementedError

    def _bounds(self) -> Any:
        raise NotImplementedError

    def _mode(self, name: str | None) -> str:
        raise NotImplementedError

    _way_out = "Another `pad_mode`"

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
        pattern = self._pattern()
        # Frames of other patterns are rarely read again soon, and keeping them takes memory.
        self._overlap = pattern.step < pattern.span and not (pattern.uniform or pattern.clips)
        self._describes = bool(vars(args).get(DESCRIBES))
        self.returns_lazy = () if self._describes else (LazyClip,)
        self._decoded_as: np.dtype = self._dtype
        self._fill_pixel = self._fill * (self._dtype.type(1 / 255) if self._normalized else 1)
        specs = [Spec(getattr(args, "dtype", DALIDataType.UINT8), 4, "FHWC")]
        if self._describes:
            specs = [Spec(DALIDataType.UINT8, 1)]
        if self._has_labels:
            specs.append(Spec(DALIDataType.INT32, 1))
        if args.enable_frame_num != "none":
            specs.append(Spec(DALIDataType.INT32, 1))
        if args.enable_timestamps:
            specs.append(Spec(DALIDataType.FLOAT64, 1))
        return (*specs, *audio_specs(args))

    def plan(self, c: PlanContext, *data: Samples) -> Planned:
        from headrace.kernels.cpu.video.sound import samples_of

        args, index = self.args, self.index
        assert isinstance(index, VideoIndex)
        modes: list[Any] = [None] * c.size
        if hasattr(args, "pad_mode"):
            modes = c.values("pad_mode")
        chosen = self._chosen and c.values(self._chosen)
        length = args.sequence_length
        numbers, spans, shapes = [], [], np.zeros((c.size, 4), np.int64)
        files = [int(row[0]) for row in data[0].rows]
        sound = np.zeros((c.size, 1 if args.audio_downmix else 2), np.int64)
        for k, row in enumerate(data[0].rows):
            file, start, begin, end = map(int, row)
            fact = index.facts[file]
            if start == BAD:
                raise BadSampleError(_failure(fact))
            if start == DRAWN:
                room = max(count_of(fact, begin, end, args.fps) - self._wanted().span, 0)
                (drawn,) = sample_uniforms(c.seed, c.iteration, c.indices[k], 1)
                start = min(int(drawn * (room + 1)), room)
            if chosen is None:
                places = self._places(fact, start, begin, end)
            else:
                places = self._named(index.parts[file], fact, begin, chosen[k])
            found = self._padded(places, count_of(fact, begin, end, args.fps), modes[k])
            numbers.append(self._numbers(fact, found, begin, end))
            shapes[k] = length, fact.height, fact.width, self._colors.channels
            spans.append(self._span(fact, places, begin, end))
            if fact.sound is not None:
                rate = fact.sound.rate if args.audio_rate is None else args.audio_rate
                sound[k] = (samples_of(spans[k][1], rate), fact.sound.channels)[: sound.shape[1]]
        if self._describes:
            lengths = [described_bytes(_named(index, file), length) for file in files]
            shapes = np.array(lengths, np.int64)[:, None]
        others = [np.full((c.size, 1), 1, np.int64)] * self._has_labels
        if args.enable_frame_num != "none":
            one = args.enable_frame_num == "scalar"
            others.append(np.full((c.size, 1), 1 if one else length, np.int64))
        if args.enable_timestamps:
            others.append(np.full((c.size, 1), length, np.int64))
        if args.enable_audio:
            others += [sound, np.zeros((c.size, 0), np.int64)]
        return Planned((shapes, *others), (files, numbers, spans))

    def _places(self, fact: Facts, start: int, begin: int, end: int) -> np.ndarray:
        """Frames of a sequence, counted from the beginning of the part, at the rate `fps`."""
        length = self.args.sequence_length
        if self._uniform:
            steps = max(length - 1, 1)
            found = (2 * np.arange(length) * (end - begin - 1) + steps) // (2 * steps)
            return np.asarray(found)
        return np.asarray(start + self.args.stride * np.arange(length, dtype=np.int64))

    def _named(self, part: Part, fact: Facts, begin: int, named: Any) -> np.ndarray:
        """The same of those that `frames` or `timestamps` names."""
        length = self.args.sequence_length
        if len(named) != length:
            raise ArgumentValueError(
                f"`{self._chosen}` has {len(named)} values, and `sequence_length` is {length}: "
                "it names the frames of a sequence, one after another."
            )
        if self._chosen == "frames":
            return np.array(named, np.int64)
        origin = 0.0 if part.begin is None else float(fact.timeline.seconds[begin])
        return fact.timeline.shown_at(np.array(named, np.float64) + origin) - begin

    def _padded(self, places: np.ndarray, count: int, mode: str | None) -> np.ndarray:
        """Places within a part of `count` frames; -1 for those that are filled."""
        outside = places[(places < 0) | (places >= count)]
        if not outside.size:
            return places
        mode = self._mode(mode)
        if mode == "none":
            raise ArgumentValueError(
                f"Unexpected out-of-bounds frame index {outside[0]} for pad_mode = 'none': the "
                f"part of the video has {count} frames. {self._way_out} says what stands for "
                "frames that are not there."
            )
        return padded(places, count, mode)

    def _numbers(self, fact: Facts, places: np.ndarray, begin: int, end: int) -> np.ndarray:
        """Numbers of the frames at these places; -1 for those that are filled."""
        numbers = begin + places
        if self.args.fps is not None:
            times = fact.timeline.seconds[begin] + places / self.args.fps
            numbers = fact.timeline.shown_at(times).clip(begin, end - 1)
        return np.where(places < 0, -1, numbers)

    def _span(self, fact: Facts, places: np.ndarray, begin: int, end: int) -> Span:
        """The time of a sequence."""
        if not self.args.enable_audio:
            return 0.0, 0.0, 0.0
        first, last = int(places.min()), int(places.max()) + 1
        if not (self._uniform or self._chosen):
            last = first + self.args.stride * self.args.sequence_length
        return span_of(fact.timeline, first, last, begin, end, self.args.fps)

    def cpu(self, c: SampleContext, *data: np.ndarray) -> tuple[Any, ...]:
        from headrace.kernels.cpu.video.pool import opened

        args, index = self.args, self.index
        assert isinstance(index, VideoIndex)
        file, numbers, span = c.row[:3]
        numbers = np.asarray(numbers)
        part, fact = index.parts[file], index.facts[file]
        found: list[Any] = []
        if self._describes:
            size = fact.height, fact.width
            found.append(described(_named(index, file), numbers, *size, fact.orientation))
        else:
            found.append(self._clip(c, part, fact, numbers))
        if self._has_labels:
            found.append(np.array([part.label], np.int32))
        if args.enable_frame_num != "none":
            shown = numbers[:1] if args.enable_frame_num == "scalar" else numbers
            found.append(shown.astype(np.int32))
        if args.enable_timestamps:
            found.append(np.where(numbers < 0, -1.0, fact.timeline.seconds[numbers]))
        if args.enable_audio:
            with opened(contents(part.path, fact.source), int(numbers[0])) as video:
                found += audio_of(video, args, span)
        return tuple(found)

    def _clip(self, c: SampleContext, part: Part, fact: Facts, numbers: np.ndarray) -> LazyClip:
        """Frames of a file, to be decoded when they are asked for."""
        from headrace.kernels.cpu.video.frame_reader import upright_colors
        from headrace.kernels.cpu.video.pool import opened

        size = fact.height, fact.width

        @contextmanager
        def unchanged(number: int) -> Iterator[Any]:
            with opened(contents(part.path, fact.source), number, keeps=self._overlap) as video:
                if video.size(fact.orientation) != size:
                    raise BadSampleError(has_changed(video.size(fact.orientation), size))
                yield video

        colors = upright_colors(self._colors, fact.orientation)
        source = ClipSource(c, unchanged, colors, self._fill_pixel, size)
        shape = len(numbers), *size, self._colors.channels
        return LazyClip(source, numbers, (0, 0), shape, self._decoded_as)

    @property
    def _normalized(self) -> bool:
        return bool(getattr(self.args, "normalized", False))


def _named(index: VideoIndex, file: int) -> str:
    """Text that tells a file, and of a remote one its version, to who decodes it."""
    source = index.facts[file].source
    if source is None or isinstance(source, str):
        return source or index.parts[file].path
    return "\0".join(map(str, source.key))


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
        *COMMON_ARGS,
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
    decodes_video=True,
    describes_video=True,
    num_outputs=count_outputs,
    output_docs=OUTPUTS,
)
class ExperimentalVideoReader(VideoReader):
    """Reads sequences of frames from videos: H.264, HEVC, VP8, VP9, AV1, MPEG-4, Motion JPEG, ...

    It needs the library PyAV, which ``pip install 'headrace[video]'`` brings. The CPU decodes,
    or with ``device="gpu"``, where PyNvVideoCodec is installed, the GPU's own decoders. Colours are
    those of ITU-R BT.601.

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
                    stacklevel=stack_level(),
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
