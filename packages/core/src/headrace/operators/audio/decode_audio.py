"""`decoders.audio`."""

from __future__ import annotations

import numpy as np

from headrace.operators.support.argument_types import BoolArg, DataTypeArg, FloatArg
from headrace.operators.support.arguments import scalars
from headrace.operators.support.audio.decoding import QUALITY, AudioDecoding, check_encoded_audio
from headrace.operators.support.compiled_steps import CompiledStepContext, SampleColumns
from headrace.operators.support.operator import ChunkContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType


@operator(
    "decoders.audio",
    old_names=("audio_decoder",),
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
class DecodeAudio(SampleOperator):
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

    chunked = True

    def plan(self, c: PlanContext, *inputs: Samples) -> Planned:
        wanted = scalars(c, "sample_rate", np.float32)
        files = self._decoding.read_headers(inputs[0].rows, wanted)
        rates = files.rates if wanted is None else wanted
        return Planned(
            (files.shapes, np.empty((c.size, 0), np.int64)), (files.headers, files.clips, rates)
        )

    def cpu_chunk(self, c: ChunkContext, *inputs: Rows) -> tuple[Rows, Rows | None]:
        headers, clips, rates = c.table
        out = c.out()
        self._decoding.read_plain(inputs[0], headers, out)
        for k, clip in enumerate(clips):
            if clip is not None:
                rate = float(rates[k]) if self.given("sample_rate") else None
                with clip:
                    self._decoding.read_clip(clip, rate, out[k], c.temp)
        if not c.is_read(1):
            return out, None
        found = c.empty(np.empty((len(rates), 0), np.int64), np.float32, 1)
        assert found.flat is not None
        found.flat[found.begins] = rates
        return out, found

    def compiled(
        self, c: CompiledStepContext, *inputs: SampleColumns
    ) -> tuple[SampleColumns, SampleColumns | None] | None:
        args = self.args
        rate = 0.0 if args.sample_rate is None else float(args.sample_rate)
        has_wanted = args.sample_rate is None or rate > 0
        if args.dtype != DALIDataType.FLOAT or c.tensors or not (has_wanted and rate.is_integer()):
            return None
        from headrace.kernels.cpu.audio import wave_steps

        (files,) = inputs
        out = c.out()
        rates = c.out(1) if c.is_read[1] else None
        words = files.address, files.extents, out.address, out.extents
        header = c.steps.take(wave_steps.HEADER_COLUMNS)
        rate_address = -1 if rates is None else rates.address
        c.steps.add(
            wave_steps.plan,
            wave_steps.carry,
            (*words, rate_address, header, args.downmix, int(rate)),
        )
        return out, rates
