"""Readers: data sets that are read epoch by epoch. Each is a class made from its declaration."""

from __future__ import annotations

import inspect
from typing import Any

from penstock.dali_names import DALI_CLASSES
from penstock.errors import OperatorNotReleasedError, UnknownOperatorError, did_you_mean
from penstock.experimental.dynamic.reader import Reader
from penstock.operators.support import registry
from penstock.operators.support.docs import docstring_for
from penstock.operators.support.listed import Listed
from penstock.operators.support.schema import OpSchema
from penstock.operators.support.schema_view import schema_name
from penstock.operators.support.signature import SourceText, class_name, signature_for
from penstock.tracebacks import public

_HEAD = ("max_batch_size", "name", "device", "num_inputs")
_NO_ARGUMENTS = ("preserve", "bytes_per_sample_hint", "device", "name")


def offered() -> dict[str, OpSchema | Listed]:
    """All readers, by the names of their classes."""
    return {
        class_name(schema): schema
        for schema in registry.listed()
        if schema.reader and schema.module == "readers" and not schema.hidden
    }


def reader_class(schema: OpSchema) -> type[Reader]:
    """The class of a reader."""
    name = class_name(schema)
    made = type(
        name,
        (Reader,),
        {
            "__doc__": docstring_for(schema, "dynamic"),
            "__module__": __name__,
            "_schema": schema,
            "_schema_name": schema_name(schema),
        },
    )
    made.__signature__ = signature_of(schema)  # type: ignore[attr-defined]
    return made


def signature_of(schema: OpSchema) -> inspect.Signature:
    """Signature of a reader's class."""
    own = list(inspect.signature(Reader.__init__).parameters.values())[1:]
    head = [p for p in own if p.name in _HEAD]
    tail = [p for p in own if p.name == "enable_checkpointing"]
    arguments = [
        p.replace(
            kind=p.KEYWORD_ONLY,  # and constants: there is no batch when a reader is made
            annotation=SourceText(str(p.annotation).replace(" | DataNode", "")),
        )
        for p in signature_for(schema, "ops").parameters.values()
        if p.name not in _NO_ARGUMENTS
    ]
    return inspect.Signature([*head, *arguments, *tail])


@public
def __getattr__(name: str) -> Any:
    if name.startswith("__"):
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    found = offered().get(name)
    if found is None:
        classes = {c for o, c in DALI_CLASSES.items() if o.startswith("readers.")}
        if name in {c.rpartition(".")[2] for c in classes}:
            raise OperatorNotReleasedError(
                f"`readers.{name}` is to come: DALI 2.4 has it, this version of Penstock does not."
            )
        raise UnknownOperatorError(
            f"`readers` has no reader {name!r}.{did_you_mean(name, offered())}"
        )
    made = reader_class(registry.find(found.name))
    globals()[name] = made
    return made


def _forget(schema: OpSchema) -> None:
    """Let the next look-up make a class anew whose reader is declared again."""
    if schema.reader:
        globals().pop(class_name(schema), None)


registry.on_replacement(_forget)


def __dir__() -> list[str]:
    return sorted(offered())
