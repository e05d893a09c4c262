"""Readers that are given to a reader: by their outputs, or as objects of dynamic mode.

Each is a dictionary that can be serialized: the name of its ``operator`` with its ``arguments``,
which of its ``outputs`` are meant, on which ``devices`` each of these is, and the ``line`` of the
program.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any

from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    ErrorLocation,
    MisusedArgumentError,
    located,
)
from headrace.operators.readers.base import Reader
from headrace.operators.support import registry

GivenReader = Mapping[str, Any]
_FIELDS = {"operator", "arguments", "outputs", "devices", "line"}


def given_reader(value: Any, what: str) -> GivenReader:
    """A reader by what a program wrote, which is `what` in messages."""
    if isinstance(value, dict) and value.keys() == _FIELDS:
        return value
    schema = getattr(value, "_schema", None)
    if schema is not None and schema.reader:  # an object of dynamic mode
        count = value._num_outputs
        devices = [str(value._device or "cpu")] * count
        return _given(schema.name, value._args, list(range(count)), devices, "")
    nodes = list(value.values()) if isinstance(value, dict) else value
    nodes = list(nodes) if isinstance(nodes, (list, tuple)) else [nodes]
    sources = {id(getattr(node, "source", None)): getattr(node, "source", None) for node in nodes}
    (source,) = sources.values() if len(sources) == 1 else (None,)
    if source is None or not source.schema.reader:
        raise ArgumentTypeError(
            f"{what} is {value!r}, and expected are the outputs of one reader as they are, before "
            "anything is decoded"
        )
    if source.tensor_args:
        raise ArgumentValueError(
            f"{what} is read with `{min(source.tensor_args)}` of each sample: give the reader "
            "constants, and use an operator such as `fn.slice` or `fn.resize` on what comes out"
        )
    outputs, devices = [node.index for node in nodes], [node.device for node in nodes]
    return _given(source.schema.name, source.args, outputs, devices, source.user_line)


def _given(
    operator: str, arguments: Mapping[str, Any], outputs: list[int], devices: list[str], line: str
) -> GivenReader:
    return {
        "operator": operator,
        "arguments": arguments,
        "outputs": outputs,
        "devices": devices,
        "line": line,
    }


def device_of(readers: Sequence[GivenReader], what: str) -> str:
    """The device that the outputs of readers are on, which are given to `what`.

    Raises `MisusedArgumentError` if they are on several.
    """
    found = [sorted(set(reader["devices"])) for reader in readers]
    every = sorted({device for devices in found for device in devices})
    if len(every) > 1:
        said = ", ".join(f"reader {k} on {' and '.join(own)}" for k, own in enumerate(found))
        raise MisusedArgumentError(
            f"The readers given to {what} are on several devices: {said}. `device=` of "
            f"{what.partition(',')[0]} says where its samples are wanted, {' or '.join(every)}; or "
            "give all readers the same one."
        )
    (device,) = every
    return str(device)


@contextmanager
def made(given: GivenReader) -> Iterator[Reader]:
    """A reader that was given, not opened; what is wrong with it is told as of its own line."""
    schema = registry.find(given["operator"])
    line = given["line"]
    place = ErrorLocation(f"fn.{schema.name}", user_stack=(line,) if line else ())
    try:
        reader: Any = schema.cls(given["arguments"])
        yield reader
    except Exception as error:
        raise located(error, place) from error
