"""Pipelines as bytes: JSON with a mark, a version and a checksum, which runs no code when read."""

from __future__ import annotations

import json
import zlib
from pathlib import Path
from typing import TYPE_CHECKING, Any

from headrace._version import __version__
from headrace.errors import ArgumentTypeError, ArgumentValueError, SerializationError
from headrace.graph.plain_values import from_plain, to_plain

if TYPE_CHECKING:
    import os

    from headrace.pipeline.settings import Settings

FORMAT_VERSION = 1
"""Raised whenever an older Headrace would misunderstand what a newer one writes."""

_MARK = "headrace pipeline"
_SHOWN_BYTES = 16
_NOT_STORED = ("checkpoint", "py_callback_pickler", "experimental_exec_dynamic")
"""Settings that are no part of a definition, or an old name of another one."""


def packed(settings: Settings, graph: dict[str, Any]) -> bytes:
    """A pipeline as bytes."""
    stored = {
        name: to_plain(value)
        for name, value in as_given(settings).items()
        if name not in _NOT_STORED and value != type(settings).__dataclass_fields__[name].default
    }
    body = {"settings": stored, "graph": graph}
    head = {_MARK: FORMAT_VERSION, "written by": __version__, "checksum": _checksum(body)}
    operators = ",\n".join([f"  {json.dumps(operator)}" for operator in graph["operators"]])
    others = "".join([f', "{k}": {json.dumps(v)}' for k, v in graph.items() if k != "operators"])
    return (
        f'{json.dumps(head)[:-1]},\n "settings": {json.dumps(stored)},\n'
        f' "graph": {{"operators": [\n{operators}\n ]{others}}}}}\n'
    ).encode()


def as_given(settings: Settings) -> dict[str, Any]:
    """All settings by their names, before they were completed for this machine."""
    names = [name for name, field in type(settings).__dataclass_fields__.items() if field.init]
    given = {name: getattr(settings, name) for name in names}
    return {
        **given,
        "num_threads": settings.threads_given,
        "device_id": settings.device_given,
    }


def unpacked(data: Any) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the settings and the graph from the result of `packed`."""
    if not isinstance(data, (bytes, bytearray, memoryview, str)):
        raise ArgumentTypeError(
            f"`serialized_pipeline` is a {type(data).__name__}; expected the bytes that "
            "`Pipeline.serialize` returned."
        )
    raw = data.encode() if isinstance(data, str) else bytes(data)
    try:
        content = json.loads(raw)
    except (ValueError, RecursionError):
        content = None
    if not isinstance(content, dict) or _MARK not in content:
        raise SerializationError(_not_one(raw))
    version, writer = content.pop(_MARK), content.pop("written by", None)
    if version != FORMAT_VERSION:
        raise SerializationError(
            f"The serialized pipeline has format {version!r}, written by Headrace {writer}; this "
            f"is Headrace {__version__}, which reads format {FORMAT_VERSION}. Serialize the "
            "pipeline with this version, or use the one that wrote it."
        )
    checksum = content.pop("checksum", None)
    if content.keys() != {"settings", "graph"} or _checksum(content) != checksum:
        raise SerializationError(
            "The serialized pipeline is damaged: its content does not match its checksum. It was "
            "changed, or not stored in full. Arguments of `Pipeline` can be replaced by those of "
            "`Pipeline.deserialize`."
        )
    return {k: from_plain(v) for k, v in content["settings"].items()}, content["graph"]


def chosen_data(data: Any, filename: str | os.PathLike[str] | None) -> Any:
    """Return the serialized pipeline: `data`, or the content of a file."""
    if (data is None) == (filename is None):
        raise ArgumentValueError(
            "`serialized_pipeline` and `filename` are mutually exclusive; precisely one of them "
            "should be given."
        )
    return data if filename is None else Path(filename).read_bytes()


def overridden(stored: dict[str, Any], overrides: dict[str, Any]) -> dict[str, Any]:
    """Arguments of `Pipeline` from a file, some of which the user replaces."""
    depth = overrides.get("prefetch_queue_depth")
    if isinstance(depth, dict):
        sizes = {k: depth.get(k, depth.get(f"{k}_size")) for k in ("cpu", "gpu")}
        if all(size is None for size in sizes.values()):
            raise ArgumentValueError(
                f"`prefetch_queue_depth` is {depth!r}; it must contain either 'cpu' or 'gpu' key."
            )
        either = next(size for size in sizes.values() if size is not None)
        full = {f"{k}_size": either if size is None else size for k, size in sizes.items()}
        overrides = {**overrides, "prefetch_queue_depth": full}
    return {**stored, **overrides}


def _checksum(body: dict[str, Any]) -> int:
    return zlib.crc32(json.dumps(body, sort_keys=True, separators=(",", ":")).encode())


def _not_one(raw: bytes) -> str:
    if not raw:
        return "The serialized pipeline is empty. Was its file written in full?"
    if _MARK.encode() in raw[:64]:
        return (
            f"The serialized pipeline is damaged: its {len(raw)} bytes cannot be read to the end. "
            "It was changed, or not stored in full."
        )
    return (
        f"Error parsing serialized pipeline: these {len(raw)} bytes were not written by "
        f"`headrace.Pipeline.serialize`, they begin with {raw[:_SHOWN_BYTES]!r}. What DALI "
        "serializes (protobuf) cannot be read: serialize the same definition with Headrace."
    )
