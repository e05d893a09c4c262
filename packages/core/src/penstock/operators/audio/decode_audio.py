"""`decoders.audio`."""

from __future__ import annotations

import numpy as np

from penstock.operators.support.argument_types import BoolArg, DataTypeArg, FloatArg
from penstock.operators.support.arguments import scalars
from penstock.operators.support.audio.decoding import (
    QUALITY,
    AudioDecoding,
    PlainFiles,
    check_encoded_audio,
)
from penstock.operators.support.operator import Operator, SampleContext, SamplesContext, operator
from penstock.operators.support.planning import PlanContext, Planned, Samples
from penstock.operators.support.registry import register
from penstock.operators.support.schema import Arg, Input, Spec
from penstock.types import DALIDataType


@operator(
    "decoders.audio",
    inputs=Input(
        "input",
        "Encoded audio: all bytes of a file as a flat array.",
        dtypes=(DALIDataType.UINT8,),
        device="cpu",
    ),
    args=(
        Arg(
            "dtype",
            DataTypeArg,
            DALIDataType.FLOAT,
            "Element type of the samples: `FLOAT`, whose range is -1 to 1, `INT16` or `INT32`. Of "
            "files of integers, integers have the highest bits. Files of floating point numbers "
            "give integers that are rounded without scaling, unless they are mixed or resampled.",
        ),
        Arg(
            "downmix",
            BoolArg,
            False,
            "Whether all channels are averaged. The samples then have the shape ``(n,)``, "
            "otherwise ``(n, channels)``.",
        ),
        Arg(
            "sample_rate",
            FloatArg,
            None,
            "Sampling rate in Hz that the audio is resampled to; by default, and if it is 0, the "
            "rate of each file is kept.",
            per_sample=True,
        ),
        QUALITY,
    ),
    num_outputs=2,
    output_docs=(
        "The samples.",
        "Their sampling rate in Hz, a float32 scalar: `sample_rate` where that is given.",
    ),
    devices=("cpu",),
)
class DecodeAudio(Operator):
    """Decodes audio: WAV, FLAC, OGG (Vorbis, Opus), MP3, AIFF, AU, CAF, W64 and RF64.

    What a file is shows in its first bytes; its name does not matter. Resampling is that of
    `audio_resample`, and like it filters nothing out when the rate becomes lower. A file without
    samples is decoded as an empty array; one whose end is missing is an error.

    Examples
    --------
    >>> encoded, labels = fn.readers.file(file_root="speech")
    >>> audio, rate = fn.decoders.audio(encoded, downmix=True, sample_rate=16000)
    """

    def infer(self, *inputs: Spec) -> tuple[Spec, Spec]:
        args = self.args
        check_encoded_audio(inputs[0].ndim)
        self._decoding = AudioDecoding(args.dtype, downmix=args.downmix, quality=args.quality)
        return Spec(args.dtype, self._decoding.ndim), Spec(DALIDataType.FLOAT, 0)

    plans_values = True

    def plan(self, c: PlanContext, *inputs: Samples) -> Planned:
        wanted = scalars(c, "sample_rate", np.float32)
        asked = [None] * c.size if wanted is None else wanted.tolist()
        clips = self._decoding.open_all(inputs[0].rows)
        counts = [
            self._decoding.out_frames(clip, rate) for clip, rate in zip(clips, asked, strict=True)
        ]
        shapes = np.empty((c.size, self._decoding.ndim), np.int64)
        shapes[:, 0] = counts
        if self._decoding.ndim > 1:
            shapes[:, 1] = [clip.channels for clip in clips]
        return Planned((shapes, np.empty((c.size, 0), np.int64)), (clips, asked))

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        clip, wanted = c.row
        rate = c.empty((), np.float32, 1)
        rate[...] = clip.rate if wanted is None else wanted
        with clip:
            return self._decoding.decode(c, clip, wanted), rate

    def cpu_together(
        self, c: SamplesContext, *inputs: list[np.ndarray]
    ) -> tuple[list[np.ndarray | None], ...] | None:
        encoded = inputs[0]
        if not all(data.ndim == 1 and data.flags.c_contiguous for data in encoded):
            return None
        wanted = self.args.sample_rate
        wanted = None if wanted is None else float(np.float32(wanted))
        files = PlainFiles(encoded, self._decoding, wanted)
        if not files.found.any():
            return None
        memory, begins, rows = c.empty(files.shapes, self._decoding.dtype)
        files.read(memory, begins)
        rate_rows: list[np.ndarray | None] = [None] * len(encoded)
        if c.is_read(1):
            rates, places, rate_rows = c.empty(_NO_SHAPE.repeat(len(encoded), 0), np.float32, 1)
            rates[places] = files.rates if wanted is None else wanted
        found = files.found
        if found.all():
            return rows, rate_rows
        return [
            row if here else None for row, here in zip(rows, found.tolist(), strict=True)
        ], rate_rows


_NO_SHAPE = np.empty((1, 0), np.int64)
register(DecodeAudio.schema.with_name("audio_decoder", deprecated="decoders.audio", hidden=True))
