"""Makes the classes of dynamic mode's readers from the declarations of readers."""

from __future__ import annotations

import inspect

from headrace.experimental.dynamic.reader import Reader
from headrace.operators.support.docs import docstring_for
from headrace.operators.support.schema import OpSchema
from headrace.operators.support.schema_view import schema_name
from headrace.operators.support.signature import SourceText, class_name, signature_for

_HEAD = ("max_batch_size", "name", "device", "num_inputs")
_NO_ARGUMENTS = ("preserve", "bytes_per_sample_hint", "device", "name")


def reader_class(schema: OpSchema, module: str) -> type[Reader]:
    """The class of a reader, for a module."""
    name = class_name(schema)
    made = type(
        name,
        (Reader,),
        {
            "__doc__": docstring_for(schema, "dynamic"),
            "__module__": module,
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
    if schema.given_readers is None:
        head = [p.replace(default="cpu") if p.name == "device" else p for p in head]
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
