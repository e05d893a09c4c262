"""Manifests of speech as NVIDIA NeMo writes them: one JSON object for each utterance."""

from __future__ import annotations

import json
import math
import warnings
from typing import Any, NamedTuple

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError
from headrace.operators.readers.storage import read_file
from headrace.tracebacks import stack_level

_DECODER = json.JSONDecoder()


class Utterance(NamedTuple):
    """A file, or a part of it, and what is said in it."""

    path: str
    offset: float
    """Start of the utterance, in seconds."""
    duration: float | None
    """Its length in seconds; to the end of the file if `None`."""
    text: bytes
    """UTF-8."""


def read_manifest(path: str, min_duration: float, max_duration: float) -> list[Utterance]:
    """The utterances that a manifest lists.

    Objects stand in lines of their own, or follow one another in any way. Lines that are no such
    object, and objects that name no file, are left out with a warning.
    """
    try:
        content = bytes(read_file(path, np.empty))
    except BadSampleError as error:
        raise ArgumentValueError(f"`manifest_filepaths`: {error}") from error
    text = content.decode("utf-8-sig", "surrogateescape")
    found: list[Utterance] = []
    at, length = 0, len(text)
    while True:
        while at < length and text[at] in " \t\r\n,\0":
            at += 1
        if at == length:
            return found
        try:
            entry, end = _DECODER.raw_decode(text, at)
        except ValueError:
            entry, end = None, text.find("\n", at)
            end = length if end < 0 else end
        utterance = _utterance(entry)
        if utterance is None:
            line = text.count("\n", 0, at) + 1
            warnings.warn(
                f"Line {line} of the manifest {path!r} is left out: it is no JSON object with "
                f'"audio_filepath": {text[at:end][:80]!r}.',
                UserWarning,
                stacklevel=stack_level(),
            )
        elif _is_wanted(utterance.duration, min_duration, max_duration):
            found.append(utterance)
        at = end


def _utterance(entry: Any) -> Utterance | None:
    if not isinstance(entry, dict) or not isinstance(entry.get("audio_filepath"), str):
        return None
    if not entry["audio_filepath"]:
        return None
    offset, duration = _seconds(entry.get("offset")), _seconds(entry.get("duration"))
    said = entry.get("text")
    text = "" if said is None else said if isinstance(said, str) else json.dumps(said)
    return Utterance(
        entry["audio_filepath"],
        max(offset or 0.0, 0.0),
        None if duration is None or duration < 0 else duration,
        text.encode("utf-8", "surrogateescape"),
    )


def _seconds(value: Any) -> float | None:
    """A number of seconds; `None` where there is none."""
    try:
        seconds = float(value)
    except (TypeError, ValueError):
        return None
    return seconds if math.isfinite(seconds) else None


def _is_wanted(duration: float | None, shortest: float, longest: float) -> bool:
    known = -1.0 if duration is None else duration
    return not (shortest > 0 and known < shortest) and not (longest > 0 and known > longest)
