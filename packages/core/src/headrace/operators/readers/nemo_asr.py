"""`readers.nemo_asr`: speech and what is said in it."""

from __future__ import annotations

from itertools import accumulate, chain
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import FileIndex, Index, RaggedColumn
from headrace.operators.readers.nemo_manifest import read_manifest
from headrace.operators.support.argument_types import BoolArg, DataTypeArg, FloatArg, PathListArg
from headrace.operators.support.audio.decoding import QUALITY, AudioDecoding
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.schema import REQUIRED, Arg, Spec
from headrace.types import DALIDataType

if TYPE_CHECKING:
    from headrace.kernels.cpu.audio.clip import Clip

_LARGE_BYTES = 4 << 20
"""Of larger files, the part is read that an utterance is in."""


def _count_outputs(args: dict[str, Any]) -> int:
    defaults = {"read_sample_rate": True, "read_text": True, "read_idxs": False}
    return 1 + sum(bool(args.get(name, default)) for name, default in defaults.items())


class _Utterances(FileIndex):
    """The utterances of manifests, whose durations may be known."""

    length_names = ("duration", "bytes")

    def lengths(self, name: str) -> np.ndarray | None:
        """Seconds of utterances, infinite where the manifest does not say, or bytes of files."""
        if name != "duration":
            return super().lengths(name)
        details: Any = self.details[0]
        return details[:, 1]  # type: ignore[no-any-return]


@reader(
    "readers.nemo_asr",
    old_names=("nemo_asr_reader",),
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

    def list_entries(self) -> Index:
        args = self.args
        if not args.manifest_filepaths:
            raise ArgumentValueError(
                "`manifest_filepaths` is an empty list; give at least one manifest."
            )
        # In single precision, as DALI compares them.
        shortest = float(np.float32(args.min_duration))
        longest = float(np.float32(args.max_duration))
        listed = [read_manifest(p, shortest, longest) for p in args.manifest_filepaths]
        found = list(chain.from_iterable(listed))
        if not found:
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
        columns: list[Any] = []
        if args.read_text:
            text = np.frombuffer(b"".join([u.text for u in found]), np.uint8)
            columns.append(RaggedColumn(text, list(accumulate(len(u.text) for u in found))))
        if args.read_idxs:
            numbers = chain.from_iterable(range(len(part)) for part in listed)
            columns.append(np.fromiter(numbers, np.int64, len(found))[:, np.newaxis])
        return _Utterances(
            [u.path for u in found],
            columns=columns,
            details=[np.array([(u.offset, _length(u.duration)) for u in found], np.float64)],
            largest_bytes=_LARGE_BYTES,
        )

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        args = self.args
        self._decoding = AudioDecoding(args.dtype, downmix=args.downmix, quality=args.quality)
        samples = Spec(args.dtype, self._decoding.ndim)
        return (samples, Spec(DALIDataType.FLOAT, 0)) if args.read_sample_rate else (samples,)

    def cpu(self, c: SampleContext, *data: Any) -> tuple[np.ndarray, ...]:
        encoded, (offset, duration) = data
        with self._decoding.open(encoded) as clip:
            first, frames = _part(offset, duration, clip)
            samples = self._decoding.decode(c, clip, self.args.sample_rate, first, frames)
            rate = np.array(clip.rate, np.float32)
        return (samples, rate) if self.args.read_sample_rate else (samples,)


def _length(duration: float | None) -> float:
    return np.inf if duration is None else duration


def _part(offset: float, duration: float, clip: Clip) -> tuple[int, int]:
    """First frame of an utterance and number of frames, of times in seconds."""
    first = int(offset * clip.rate)
    if first > clip.frames:
        raise BadSampleError(
            f"The manifest lets the utterance begin at {offset:g} seconds, but the file has "
            f"{clip.frames / clip.rate:g}."
        )
    return first, int(min(duration * clip.rate, clip.frames - first))
