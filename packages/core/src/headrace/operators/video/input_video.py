"""`experimental.inputs.video`: a video that is fed, a batch of sequences at a time."""

from __future__ import annotations

from types import SimpleNamespace
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentValueError,
    DataTypeError,
    OutOfRangeError,
    ShapeError,
)
from headrace.operators.readers.video_description import described_fed
from headrace.operators.support.argument_types import BoolArg, IntArg, StringArg
from headrace.operators.support.external.data import samples_of
from headrace.operators.support.external.input_queue import (
    AnyOutputBatch,
    Declared,
    InputQueue,
    OutputBatch,
)
from headrace.operators.support.operator import SampleOperator, operator
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.operators.support.video.color_space import COLOR_SPACE, is_tagged
from headrace.operators.support.video.fed_video import FedVideo
from headrace.operators.support.video.orientation import ADJUST_ORIENTATION, orientation_of
from headrace.types import DALIDataType

_FRAMES = Spec(DALIDataType.UINT8, 4, "FHWC")
_BYTES = Spec(DALIDataType.UINT8, 1)


class VideoInputQueue(InputQueue):
    """Videos that `feed_input` has put in, cut into batches of sequences."""

    def __init__(self, args: dict[str, Any]) -> None:
        declared = Declared(_FRAMES.layout, _FRAMES.dtype, _FRAMES.ndim)
        super().__init__(
            None,
            [declared],
            single=True,
            cycle=None,
            batch=True,
            batch_info=False,
            no_copy=False,
            repeat_last=False,
            blocking=args["blocking"],
        )
        self._length: int = args["sequence_length"]
        self._args = SimpleNamespace(**args)
        self._pads: bool = args["last_sequence_policy"] == "pad"
        if self._length < 1:
            raise ArgumentValueError(
                f"`sequence_length` is {self._length}, but must be at least 1."
            )
        self._video: FedVideo | None = None
        """The video at hand."""
        self._begin = 0
        """The frame of it that comes next."""

    def ready(self) -> bool:
        """Tell if a batch can be had now."""
        return self._video is not None or super().ready()

    def clear(self) -> None:
        """Forget everything that was fed and not used."""
        super().clear()
        self._video = None

    def begin_anew(self) -> None:
        """Forget what was fed."""
        super().begin_anew()
        self._video = None

    def prepare(
        self, data: Any, layout: str | None = None, cuda_stream: Any = None
    ) -> list[AnyOutputBatch]:
        """Check a video to be fed: a batch of one."""
        samples = list(samples_of(data, None)[0])
        if len(samples) != 1:
            raise ShapeError(
                f'"{self.name}" takes one video at a time, as a batch of one, and got '
                f"{len(samples)}; each is cut into batches of sequences."
            )
        if samples[0].dtype != np.uint8 or samples[0].ndim != 1:
            raise DataTypeError(
                f'"{self.name}" takes the bytes of a video, a flat array of uint8, and got '
                f"{samples[0].dtype} of {samples[0].ndim} dimensions."
            )
        return [OutputBatch([samples[0].copy()], None, _BYTES)]

    def collect(self, size: int, iteration: int, epoch: int) -> list[AnyOutputBatch]:
        """The next sequences of the video at hand, `size` at most."""
        if self._video is None:
            if not self._queue:
                raise OutOfRangeError(
                    f'No data was provided: "{self.name}" was not fed. Call `feed_input` with a '
                    "video."
                )
            (fed,) = self._queue.popleft()
            assert isinstance(fed, OutputBatch)
            assert fed.samples is not None
            self._video, self._begin = FedVideo(fed.samples[0]), 0
        sequences: list[np.ndarray] = []
        fed_video, self._video = self._video, None  # a bad one is gone
        with fed_video.opened(self._begin) as video:
            while len(sequences) < size and self._begin < len(video.index):
                numbers = np.arange(self._begin, self._begin + self._length)
                there = numbers < len(video.index)
                numbers = np.where(there, numbers, -1) if self._pads else numbers[there]
                sequences.append(self._sequence(fed_video, video, numbers))
                self._begin += self._length
            if self._begin < len(video.index):
                self._video = fed_video
        return [OutputBatch(sequences, None, _BYTES if self.describes else _FRAMES)]

    def _sequence(self, fed: FedVideo, video: Any, numbers: np.ndarray) -> np.ndarray:
        """The frames of these numbers, or their description; negative ones are black."""
        orientation = orientation_of(video, self._args)
        extents = video.size(orientation)
        if self.describes:
            return described_fed(fed, numbers, extents, orientation)
        from headrace.kernels.cpu.video.colors import Colors
        from headrace.kernels.cpu.video.frame_reader import upright_colors

        out = np.zeros((len(numbers), *extents, 3), np.uint8)
        colors = Colors("RGB", tagged=is_tagged(self._args))
        video.read(numbers.tolist(), out, upright_colors(colors, orientation))
        return out


@operator(
    "experimental.inputs.video",
    args=(
        Arg("sequence_length", IntArg, REQUIRED, "Frames of a sequence."),
        Arg(
            "last_sequence_policy",
            StringArg,
            "partial",
            'What becomes of frames at the end that are no whole sequence: ``"partial"`` gives a '
            'shorter one, ``"pad"`` fills it with black frames.',
            choices=("partial", "pad"),
        ),
        COLOR_SPACE,
        ADJUST_ORIENTATION,
        Arg("blocking", BoolArg, False, "Wait for `feed_input` when there is no data."),
        Arg("no_copy", BoolArg, False, "Whether DALI keeps no copy of what is fed.", hint=True),
        Arg("affine", BoolArg, True, "Whether decoding threads are tied to cores.", hint=True),
    ),
    output_docs=("Sequences of frames, RGB, in the layout FHWC.",),
    devices=("cpu", "mixed"),
    dynamic=False,
    fed=True,
    decodes_video=True,
    describes_video=True,
)
class InputVideo(SampleOperator):
    """Cuts videos that are fed to the pipeline into batches of sequences.

    `Pipeline.feed_input` takes the bytes of one video, as a batch of one. Each iteration gives the
    next sequences, as many as the batch size; the last batch of a video may have fewer. With
    ``device="mixed"`` the GPU's decoders do what they can, where PyNvVideoCodec is installed, and
    the CPU the rest.

    Examples
    --------
    >>> video = fn.experimental.inputs.video(name="clip", sequence_length=16)
    >>> # pipe.feed_input("clip", [np.fromfile("a.mp4", np.uint8)])
    """

    def infer(self, *inputs: Spec) -> Spec:
        """Never called: it is fed."""
        raise AssertionError("a video is fed, not computed")
