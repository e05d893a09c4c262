"""`readers.nemo_asr`: speech and what is said in it."""

from __future__ import annotations

import contextlib
import os
from itertools import chain
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import ArgumentValueError, BadSampleError
from penstock.operators.readers.base import Reader, reader
from penstock.operators.readers.nemo_manifest import Utterance, read_manifest
from penstock.operators.readers.storage import is_remote, read_file
from penstock.operators.support.argument_types import BoolArg, DataTypeArg, FloatArg, PathListArg
from penstock.operators.support.audio.decoding import QUALITY, AudioDecoding
from penstock.operators.support.registry import register
from penstock.operators.support.schema import REQUIRED, Arg, Spec
from penstock.types import DALIDataType

if TYPE_CHECKING:
    from penstock.kernels.cpu.audio.clip import Clip
    from penstock.operators.support.operator import SampleContext

_LARGE_BYTES = 4 << 20


def _count_outputs(args: dict[str, Any]) -> int:
    defaults = {"read_sample_rate": True, "read_text": True, "read_idxs": False}
    return 1 + sum(bool(args.get(name, default)) for name, default in defaults.items())


@reader(
    "readers.nemo_asr",
    args=(
        Arg(
            "manifest_filepaths",
            PathListArg,
            REQUIRED,
            'The manifests: files with a JSON object for each utterance, of which "audio_filepath" '
            'is needed and "text", "offset" and "duration" (in seconds) may be there.',
        ),
        Arg("read_sample_rate", BoolArg, True, "Whether there is an output for sampling rates."),
        Arg("read_text", BoolArg, True, "Whether there is an output for what is said."),
        Arg(
            "read_idxs",
            BoolArg,
            False,
            "Whether there is an output for the number that an utterance has in its manifest; "
            "those that are too short or too long are not counted.",
        ),
        Arg(
            "dtype",
            DataTypeArg,
            DALIDataType.FLOAT,
            "Element type of the samples: `FLOAT`, whose range is -1 to 1, `INT16` or `INT32`.",
        ),
        Arg(
            "downmix",
            BoolArg,
            True,
            "Whether all channels are averaged. The samples then have the shape ``(n,)``, "
            "otherwise ``(n, channels)``.",
        ),
        Arg(
            "sample_rate",
            FloatArg,
            -1.0,
            "Sampling rate in Hz that the audio is resampled to; that of each file is kept if it "
            "is not positive.",
        ),
        QUALITY,
        Arg(
            "min_duration",
            FloatArg,
            0.0,
            'Utterances whose "duration" is less, in seconds, or missing, are left out; 0 takes '
            "all.",
        ),
        Arg(
            "max_duration",
            FloatArg,
            0.0,
            'Utterances whose "duration" is more, in seconds, are left out; 0 takes all.',
        ),
        Arg("normalize_text", BoolArg, None, "Has no effect any more.", deprecated=""),
    ),
    num_outputs=_count_outputs,
    output_docs=(
        "The samples.",
        "With `read_sample_rate`: the sampling rate of the file in Hz, a float32 scalar.",
        "With `read_text`: what is said, UTF-8, 1-D, uint8.",
        "With `read_idxs`: number of the utterance in its manifest, int64, shape (1,).",
    ),
)
class NemoAsrReader(Reader):
    """Reads speech and what is said in it, as listed by manifests of NVIDIA NeMo.

    Audio is decoded as by `decoders.audio`. Where a manifest gives an offset and a duration, that
    part of the file is read. Paths are relative to the working directory.

    Examples
    --------
    >>> audio, rate, text = fn.readers.nemo_asr(manifest_filepaths="train.json", sample_rate=16000)
    """

    _utterances: list[Utterance]
    _numbers: list[int]

    def find_samples(self) -> int:
        args = self.args
        if not args.manifest_filepaths:
            raise ArgumentValueError(
                "`manifest_filepaths` is an empty list; give at least one manifest."
            )
        # In single precision, as DALI compares them.
        shortest = float(np.float32(args.min_duration))
        longest = float(np.float32(args.max_duration))
        listed = [read_manifest(p, shortest, longest) for p in args.manifest_filepaths]
        self._utterances = list(chain.from_iterable(listed))
        self._numbers = list(chain.from_iterable(range(len(part)) for part in listed))
        if not self._utterances:
            raise ArgumentValueError(
                f"No files found: the manifests {', '.join(args.manifest_filepaths)} list no "
                "utterance"
                + (
                    f" of `min_duration`={args.min_duration:g} to "
                    f"`max_duration`={args.max_duration:g} seconds."
                    if args.min_duration > 0 or args.max_duration > 0
                    else "."
                )
            )
        return len(self._utterances)

    def infer(self, *inputs: Spec) -> tuple[Spec, ...]:
        args = self.args
        self._decoding = AudioDecoding(args.dtype, downmix=args.downmix, quality=args.quality)
        specs = [Spec(args.dtype, self._decoding.ndim)]
        specs += [Spec(DALIDataType.FLOAT, 0)] * args.read_sample_rate
        specs += [Spec(DALIDataType.UINT8, 1)] * args.read_text
        specs += [Spec(DALIDataType.INT64, 1)] * args.read_idxs
        return tuple(specs)

    def source_info(self, entry: int) -> str:
        return self._utterances[entry].path

    def load(self, c: SampleContext, entry: int) -> tuple[np.ndarray, ...]:
        utterance, args = self._utterances[entry], self.args
        with self._open(c, utterance) as clip:
            first, frames = _part(utterance, clip)
            found = [self._decoding.decode(c, clip, args.sample_rate, first, frames)]
            rate = clip.rate
        if args.read_sample_rate:
            found.append(np.array(rate, np.float32))
        if args.read_text:
            found.append(np.frombuffer(utterance.text, np.uint8))
        if args.read_idxs:
            found.append(np.array([self._numbers[entry]], np.int64))
        return tuple(found)

    def _open(self, c: SampleContext, utterance: Utterance) -> Clip:
        """The file of an utterance; a large one of which a part may do is not read as a whole."""
        path = utterance.path.removeprefix("file://")
        if (utterance.offset or utterance.duration is not None) and not is_remote(path):
            with contextlib.suppress(OSError, ValueError):  # `read_file` says what is wrong
                if os.path.getsize(path) > _LARGE_BYTES:
                    return self._decoding.open(path)
        return self._decoding.open(read_file(path, c.temp))


register(
    NemoAsrReader.schema.with_name("nemo_asr_reader", deprecated="readers.nemo_asr", hidden=True)
)


def _part(utterance: Utterance, clip: Clip) -> tuple[int, int]:
    """First frame of an utterance and number of frames."""
    first = int(utterance.offset * clip.rate)
    if first > clip.frames:
        raise BadSampleError(
            f"The manifest lets the utterance begin at {utterance.offset:g} seconds, but the file "
            f"{utterance.path!r} has {clip.frames / clip.rate:g}."
        )
    left = clip.frames - first
    if utterance.duration is None:
        return first, left
    return first, min(int(utterance.duration * clip.rate), left)
