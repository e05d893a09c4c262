"""`readers.video` and `readers.video_resize`."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, DataTypeError
from headrace.operators.readers.base import reader
from headrace.operators.readers.video import VideoReader
from headrace.operators.readers.video_arguments import COMMON_ARGS, OUTPUTS, count_outputs
from headrace.operators.readers.video_listing import SequencePattern, frame_bounds, time_bounds
from headrace.operators.support.argument_types import BoolArg, DataTypeArg, IntArg
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.resize.request import RESIZE_ARGS, ResizeRequest
from headrace.operators.support.resize.resampling import RESAMPLING_ARGS, Resampling
from headrace.operators.support.resize.sample import SampleResampler
from headrace.operators.support.schema import Arg, Spec
from headrace.types import DALIDataType

_PLAIN_ARGS = (
    *COMMON_ARGS,
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
        return "constant" if self.args.pad_sequences else "none"

    _way_out = "`pad_sequences=True`, black frames,"


@reader(
    "readers.video",
    old_names=("video_reader",),
    epoch_shuffle=False,
    args=(*_PLAIN_ARGS, _DTYPE),
    devices=("cpu", "gpu"),
    decodes_video=True,
    describes_video=True,
    num_outputs=count_outputs,
    output_docs=OUTPUTS,
)
class ReadersVideo(PlainVideoReader):
    """Reads sequences of frames from videos: H.264, HEVC, VP8, VP9, AV1, MPEG-4, Motion JPEG, ...

    It needs the library PyAV, which ``pip install 'headrace[video]'`` brings. The CPU decodes,
    or with ``device="gpu"``, where PyNvVideoCodec is installed, the GPU's own decoders. Colours are
    those of ITU-R BT.601.

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
    decodes_video=True,
    describes_video=True,
    num_outputs=count_outputs,
    output_docs=OUTPUTS,
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
        self.returns_lazy = ()
        self._decoded_as = self._dtype if self._normalized else np.dtype(np.uint8)
        read = DALIDataType.FLOAT if self._normalized else DALIDataType.UINT8
        self._request = ResizeRequest(self, 2)
        self._resampling = Resampling(self, read)
        self._resampler = SampleResampler("HWC")
        return specs

    def plan(self, c: PlanContext, *data: Samples) -> Planned:
        planned = super().plan(c, *data)
        if self._describes:
            return planned
        extents = np.ascontiguousarray(planned.shapes[0][:, 1:3].T)
        axes = self._request.plan(c, extents, self._resampling.filters(c))
        shapes = planned.shapes[0].copy()
        shapes[:, 1:3] = axes["length"].T
        return Planned((shapes, *planned.shapes[1:]), (*planned.table, axes.T))

    def cpu(self, c: SampleContext, *data: np.ndarray) -> tuple[Any, ...]:
        found = super().cpu(c, *data)
        if self._describes:
            return found
        resampling, axes = self._resampling, c.row[3]
        out = c.empty(c.shape, self._dtype)
        self._resampler.run_clip(c, found[0], axes, resampling.antialias, out, resampling.rounds_to)
        return (out, *found[1:])
