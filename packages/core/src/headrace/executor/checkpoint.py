"""Contents of a checkpoint, and its bytes: JSON with a mark, a version and a checksum.

JSON, because bytes from elsewhere must not be able to run code, as a pickle can, and because a few
numbers for each operator are all there is to store. It contains no batch data.
"""

from __future__ import annotations

import json
import zlib
from dataclasses import dataclass, field
from typing import Any

from headrace._version import __version__
from headrace.errors import ArgumentTypeError, CheckpointError

FORMAT_VERSION = 3
"""Raised whenever another Headrace would misunderstand what this one writes.

1 and 2 were of other random numbers.
"""

_MARK = "headrace checkpoint"
TAKEN = "taken"
"""Key of `PipelineCheckpoint.sources`: iterations, counted from the next one, that the consumer has
had out of turn."""
_SHOWN_BYTES = 16


@dataclass(slots=True)
class PipelineCheckpoint:
    """The state of a pipeline, as its consumer sees it."""

    iteration: int
    """Number of the next iteration that the consumer will get: random streams count by it."""
    sources: dict[str, Any]
    """Positions of the external sources: `InputQueues.state`."""
    operators: dict[str, dict[str, Any]] = field(default_factory=dict)
    """Kind, seed and state of each operator, by a name that identifies it."""
    iterator: dict[str, Any] | None = None
    """Position of the iterator that ran the pipeline, if one did."""

    def packed(self) -> bytes:
        """As bytes."""
        body = {
            "iteration": self.iteration,
            "sources": self.sources,
            "operators": self.operators,
            "iterator": self.iterator,
        }
        text = _dumped(body)
        head = {
            _MARK: FORMAT_VERSION,
            "written by": __version__,
            "checksum": zlib.crc32(text.encode()),
        }
        # The body as it is, after the head's entries, so that the beginning says what it is.
        return f'{json.dumps(head)[:-1]}, "state": {text}}}\n'.encode()

    @classmethod
    def unpacked(cls, data: Any) -> PipelineCheckpoint:
        """Read the result of `packed`."""
        if not isinstance(data, (bytes, bytearray, memoryview, str)):
            raise ArgumentTypeError(
                f"`checkpoint` is a {type(data).__name__}; expected the bytes that "
                "`Pipeline.checkpoint` returned, or the content of the file it wrote."
            )
        raw = data.encode() if isinstance(data, str) else bytes(data)
        try:
            content = json.loads(raw)
        except (ValueError, RecursionError):
            content = None
        if not isinstance(content, dict) or _MARK not in content:
            raise CheckpointError(_not_one(raw))
        version, writer = content[_MARK], content.get("written by")
        if version != FORMAT_VERSION:
            raise CheckpointError(
                f"The checkpoint has format {version!r}, written by Headrace {writer}; this is "
                f"Headrace {__version__}, which reads format {FORMAT_VERSION}. "
                "Resume with the version that wrote it, or start anew without `checkpoint`."
            )
        body = content.get("state")
        if (
            not isinstance(body, dict)
            or body.keys() != set(cls.__slots__)
            or zlib.crc32(_dumped(body).encode()) != content.get("checksum")
        ):
            raise CheckpointError(
                "The checkpoint is damaged: its content does not match its checksum. It was "
                "changed, or not stored in full."
            )
        return cls(**body)


def _dumped(body: Any) -> str:
    return json.dumps(body, sort_keys=True, separators=(",", ":"))


def _not_one(raw: bytes) -> str:
    if not raw:
        return "The checkpoint is empty. Was the file that it comes from written in full?"
    if _MARK.encode() in raw[:64]:
        return (
            f"The checkpoint is damaged: its {len(raw)} bytes cannot be read to the end. It was "
            "changed, or not stored in full."
        )
    return (
        f"These {len(raw)} bytes are no checkpoint of Headrace, they begin with "
        f"{raw[:_SHOWN_BYTES]!r}. Pass what `Pipeline.checkpoint` or an iterator's `checkpoints` "
        "returned, or the content of a file with it, `Path(name).read_bytes()`, not its name; "
        "checkpoints of DALI cannot be read."
    )
