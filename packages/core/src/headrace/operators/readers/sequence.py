"""`readers.sequence`: sequences of frames that are files."""

from __future__ import annotations

from itertools import groupby
from operator import itemgetter

import numpy as np

from headrace.errors import ArgumentChoiceError, ArgumentValueError, BadSampleError
from headrace.kernels.cpu.decode.pixels import PixelFormat, decode
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import FileIndex, Index
from headrace.operators.readers.listing import list_classes
from headrace.operators.support.argument_types import ImageTypeArg, IntArg, PathArg
from headrace.operators.support.decode.encoded import open_encoded
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.types import DALIDataType, DALIImageType

_ENDINGS = ("jpg", "jpeg", "png", "bmp", "tif", "tiff", "pnm", "ppm", "pgm", "pbm", "jp2", "webp")
_FRAMES = tuple([f"*.{ending}" for ending in _ENDINGS])
_COLORS = (DALIImageType.RGB, DALIImageType.BGR, DALIImageType.GRAY)


@reader(
    "readers.sequence",
    args=(
        Arg(
            "file_root",
            PathArg,
            REQUIRED,
            "Directory with a directory for each stream, in which files are its frames, in the "
            "order of their names.",
        ),
        Arg("sequence_length", IntArg, REQUIRED, "Number of frames of a sequence."),
        Arg("step", IntArg, 1, "Frames from the first one of a sequence to that of the next."),
        Arg("stride", IntArg, 1, "Frames of the stream from one of a sequence to the next."),
        Arg("image_type", ImageTypeArg, DALIImageType.RGB, "Colours: RGB, BGR or GRAY."),
    ),
    old_names=("sequence_reader",),
    epoch_shuffle=False,
    hidden=True,
    deprecated="external_source",
    dynamic=False,
    output_docs=("The frames, uint8, in the layout FHWC.",),
)
class SequenceReader(Reader):
    """Reads sequences of frames that are files: images as `decoders.image` takes them.

    Sequences lie within one stream and are complete. Frames of a sequence have one size.

    Examples
    --------
    >>> frames = fn.readers.sequence(file_root="streams", sequence_length=8, step=8)
    """

    def list_entries(self) -> Index:
        args = self.args
        for name in ("sequence_length", "step", "stride"):
            if getattr(args, name) < 1:
                raise ArgumentValueError(f"`{name}` must be at least 1, got {getattr(args, name)}.")
        if args.image_type not in _COLORS:
            raise ArgumentChoiceError(
                f"`image_type` must be RGB, BGR or GRAY, got {args.image_type.name}."
            )
        listing = list_classes(args.file_root, file_filters=_FRAMES)
        found: list[range] = []
        span = (args.sequence_length - 1) * args.stride + 1
        for _, frames in groupby(enumerate(listing.labels.tolist()), itemgetter(1)):
            numbers = [number for number, _ in frames]
            begins = range(numbers[0], numbers[-1] + 2 - span, args.step)
            found += [range(begin, begin + span, args.stride) for begin in begins]
        if not found:
            raise ArgumentValueError(
                f"No stream in `file_root`={args.file_root!r} has the {span} frames that a "
                f"sequence spans: `sequence_length` is {args.sequence_length}, `stride` "
                f"{args.stride}."
            )
        return FileIndex(listing.names, root=listing.root, files=np.array(found, np.int64))

    def infer(self, *data: Spec) -> Spec:
        self._format = PixelFormat(self.args.image_type.name, np.dtype(np.uint8), True, False)
        return Spec(DALIDataType.UINT8, 4, "FHWC")

    def cpu(self, c: SampleContext, *data: np.ndarray) -> np.ndarray:
        opened = [open_encoded(frame) for frame in data]
        shapes = [self._format.shape(header) for _, header in opened]
        for k, shape in enumerate(shapes):
            if shape != shapes[0]:
                raise BadSampleError(
                    f"Frame {k} of the sequence has the shape {shape}, and frame 0 {shapes[0]}; "
                    "frames must be alike."
                )
        out = c.empty((len(opened), *shapes[0]), np.uint8)
        for target, (frame, header) in zip(out, opened, strict=True):
            made = decode(frame, header, self._format, None, c.temp, c.temp)
            np.copyto(target, made)
        return out
