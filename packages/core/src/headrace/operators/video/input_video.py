"""`experimental.inputs.video`: a video that is fed, a batch of sequences at a time."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentValueError,
    BadSampleError,
    DataTypeError,
    OutOfRangeError,
    ShapeError,
)
from headrace.kernels.cpu.decode.exif import UPRIGHT
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
from headrace.operators.support.video.color_space import COLOR_SPACE
from headrace.operators.support.video.orientation import ADJUST_ORIENTATION
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
        self._tagged = args["color_space"] == "tag"
        self._adjusts: bool = args["adjust_orientation"]
        self._pads: bool = args["last_sequence_policy"] == "pad"
        if self._length < 1:
            raise ArgumentValueError(
                f"`sequence_length` is {self._length}, but must be at least 1."
            )
        self._encoded: np.ndarray | None = None
        self._begin = 0

    def ready(self) -> bool:
        """Tell if a batch can be had now."""
        return self._encoded is not None or super().ready()

    def clear(self) -> None:
        """Forget everything that was fed and not used."""
        super().clear()
        self._encoded = None

    def begin_anew(self) -> None:
        """Forget what was fed."""
        super().begin_anew()
        self._encoded = None

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
        from headrace.kernels.cpu.video.colors import Colors
        from headrace.kernels.cpu.video.frame_reader import upright_colors
        from headrace.kernels.cpu.video.pool import opened

        if self._encoded is None:
            if not self._queue:
                raise OutOfRangeError(
                    f'No data was provided: "{self.name}" was not fed. Call `feed_input` with a '
                    "video."
                )
            (fed,) = self._queue.popleft()
            assert isinstance(fed, OutputBatch)
            assert fed.samples is not None
            self._encoded, self._begin = fed.samples[0], 0
        sequences: list[np.ndarray] = []
        try:
            with opened(self._encoded) as video:
                count = len(video.index)
                orientation = video.orientation if self._adjusts else UPRIGHT
                colors = upright_colors(Colors("RGB", tagged=self._tagged), orientation)
                extents = video.size(orientation)
                while len(sequences) < size and self._begin < count:
                    end = self._begin + self._length
                    frames = self._length if self._pads else min(end, count) - self._begin
                    out = np.zeros((frames, *extents, 3), np.uint8)
                    numbers = range(self._begin, min(end, count))
                    video.read(numbers, out, colors)
                    sequences.append(out)
                    self._begin = end
        except BadSampleError:
            self._encoded = None
            raise
        if self._begin >= count:
            self._encoded = None
        return [OutputBatch(sequences, None, _FRAMES)]


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
)
class InputVideo(SampleOperator):
    """Cuts videos that are fed to the pipeline into batches of sequences.

    `Pipeline.feed_input` takes the bytes of one video, as a batch of one. Each iteration gives the
    next sequences, as many as the batch size; the last batch of a video may have fewer.

    Examples
    --------
    >>> video = fn.experimental.inputs.video(name="clip", sequence_length=16)
    >>> # pipe.feed_input("clip", [np.fromfile("a.mp4", np.uint8)])
    """

    def infer(self, *inputs: Spec) -> Spec:
        """Never called: it is fed."""
        raise AssertionError("a video is fed, not computed")
