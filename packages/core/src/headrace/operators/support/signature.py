"""From a declaration to the signatures of its function and of its class."""

from __future__ import annotations

import enum
import re
from collections.abc import Iterator
from inspect import Parameter, Signature
from typing import TYPE_CHECKING, Any, Literal

if TYPE_CHECKING:
    from headrace.operators.support.listed import Listed
    from headrace.operators.support.schema import Input, OpSchema

Api = Literal["fn", "ops", "dynamic"]
VARIADIC = "inputs"
"""Name of the parameter that takes any number of inputs."""
_BY_POSITION = Parameter.POSITIONAL_OR_KEYWORD


class SourceText(str):
    """Text that a signature shows as it is, without quotes."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)


def class_name(schema: OpSchema | Listed) -> str:
    """Name of the operator's class in its module below ``ops``: ``"CropMirrorNormalize"``."""
    if schema.class_name:
        return schema.class_name
    name = schema.name.rpartition(".")[2]
    start = "_" if name.startswith("_") else ""
    end = "_" if name.endswith("_") else ""
    words = name.strip("_").split("_")
    return start + "".join(_ACRONYMS.get(w, w[:1].upper() + w[1:]) for w in words) + end


_ACRONYMS = {
    "bbox": "BBox",
    "coco": "COCO",
    "dl": "DL",
    "mfcc": "MFCC",
    "mxnet": "MXNet",
    "rms": "RMS",
    "roi": "ROI",
    "ssd": "SSD",
    "tfrecord": "TFRecord",
}
"""DALI's spelling of words in class names of operators."""
_WORD_ENDS = re.compile("([a-z][0-9]*)(?=[A-Z])|([A-Z][0-9]*)(?=[A-Z][a-z])")


def snake_case(name: str) -> str:
    """The name of a function that belongs to a class: ``"random_bbox_crop"``."""
    for word, acronym in _ACRONYMS.items():
        name = name.replace(acronym, word.capitalize())
    return _WORD_ENDS.sub(lambda end: f"{end[0]}_", name).lower()


def signature_for(schema: OpSchema, api: Api = "fn") -> Signature:
    """Signature of ``fn.<name>``, of the constructor of the operator's class, without ``self``, or
    of the function of dynamic mode.

    Inputs are positional only and arguments keyword only. Annotations are text: the declaration
    knows types by name.
    """
    if api == "ops":
        keywords = [*_arguments(schema, required=False, by_position=True)]
        keywords += [p for p in _generic_arguments() if p.name not in schema.positional]
        return Signature(keywords, return_annotation=SourceText("None"))
    if api == "dynamic":
        return _dynamic_signature(schema)
    keywords = [*_arguments(schema, required=True), *_generic_arguments()]
    return Signature(
        [*_inputs(schema), *keywords], return_annotation=SourceText(return_annotation(schema))
    )


PIPELINE_ARGUMENTS = ("preserve", "bytes_per_sample_hint", "seed")
"""Arguments that mean something in a pipeline only; dynamic mode has `rng` for the seed."""


def _dynamic_signature(schema: OpSchema) -> Signature:
    values = "Tensor | Batch | TensorLike"
    inputs = [p.replace(annotation=_replaced(p, values)) for p in _inputs(schema)]
    keywords = [
        Parameter(
            name, Parameter.KEYWORD_ONLY, default=None, annotation=SourceText(f"{kind} | None")
        )
        for name, kind in (("batch_size", "int"), ("device", "DeviceLike"))
    ]
    if schema.random:
        keywords.append(
            Parameter(
                "rng", Parameter.KEYWORD_ONLY, default=None, annotation=SourceText("RNG | None")
            )
        )
    for parameter in _arguments(schema, required=True):
        if parameter.name in PIPELINE_ARGUMENTS:
            continue
        keywords.append(
            parameter.replace(
                kind=Parameter.KEYWORD_ONLY, annotation=_replaced(parameter, "Tensor | Batch")
            )
        )
    if callable(schema.num_outputs):
        returned = "Any"
    elif schema.num_outputs == 0:
        returned = "None"
    elif schema.num_outputs == 1:
        returned = "Tensor | Batch"
    else:
        returned = "tuple[Tensor | Batch, ...]"
    return Signature([*inputs, *keywords], return_annotation=SourceText(returned))


def _replaced(parameter: Parameter, values: str) -> SourceText:
    """The annotation of a parameter, with what dynamic mode has in the place of nodes."""
    text = str(parameter.annotation).replace("DataNode | TensorLike", values)
    return SourceText(text.replace("DataNode", values))


def call_signature_for(schema: OpSchema) -> Signature:
    """Signature of calling an instance of the operator's class, without ``self``."""
    return Signature(
        [*_inputs(schema), *_arguments(schema, required=False)],
        return_annotation=SourceText(return_annotation(schema)),
    )


def return_annotation(schema: OpSchema) -> str:
    """Return type of a call: nothing, one node, or a list of nodes.

    Where the arguments decide, it is `Any`: a union would have to be narrowed at every use.
    """
    if callable(schema.num_outputs):
        return "Any"
    if schema.num_outputs == 0:
        return "None"
    return "DataNode" if schema.num_outputs == 1 else "list[DataNode]"


def default_text(value: Any) -> str:
    """`value` as it would be typed in a call, given ``from headrace.types import ...``."""
    if isinstance(value, enum.Enum):
        return f"{type(value).__name__}.{value.name}"
    if isinstance(value, list):
        return f"[{', '.join(default_text(v) for v in value)}]"
    if isinstance(value, tuple):
        inner = ", ".join(default_text(v) for v in value)
        return f"({inner},)" if len(value) == 1 else f"({inner})"
    if isinstance(value, str) and "'" not in value:
        return f'"{repr(value)[1:-1]}"'
    return repr(value)


def _inputs(schema: OpSchema) -> Iterator[Parameter]:
    fixed = schema.inputs[:-1] if schema.variadic else schema.inputs
    for declared in fixed:
        yield _input(declared)
    if schema.variadic:
        # The last declared input stands for any number of inputs; at least one, unless optional.
        repeated = schema.inputs[-1]
        if not repeated.optional:
            yield _input(repeated)
        yield Parameter(
            VARIADIC if repeated.name != VARIADIC else f"more_{VARIADIC}",
            Parameter.VAR_POSITIONAL,
            annotation=SourceText("DataNode | TensorLike"),
        )


def _input(declared: Input) -> Parameter:
    annotation = "DataNode | TensorLike"
    if declared.optional:
        return Parameter(
            declared.name,
            Parameter.POSITIONAL_ONLY,
            default=None,
            annotation=SourceText(f"{annotation} | None"),
        )
    return Parameter(declared.name, Parameter.POSITIONAL_ONLY, annotation=SourceText(annotation))


def _arguments(
    schema: OpSchema, *, required: bool, by_position: bool = False
) -> Iterator[Parameter]:
    """Parameters of arguments: positional ones, required ones, then the others by name.

    What an operator requires may be given to its class or to the call of an instance, so neither
    of those two requires it. Where there are inputs, they alone are given by position to functions.
    """
    positional = schema.positional if by_position or not schema.inputs else ()
    by_name = (a for a in schema.shown_args.values() if a.name not in positional)
    others = sorted(by_name, key=lambda a: (not a.required, a.name))
    for arg in (*map(schema.args.get, positional), *others):
        if arg is None:
            yield next(_generic_arguments()).replace(kind=_BY_POSITION)
            continue
        needed = arg.required and required
        types = [arg.type.annotation]
        if arg.per_sample:
            types.append("DataNode")
        if not needed and arg.type.annotation != "object":
            types.append("None")
        default = arg.default if not arg.required else Parameter.empty if needed else None
        yield Parameter(
            arg.name,
            _BY_POSITION if arg.name in positional else Parameter.KEYWORD_ONLY,
            default=default,
            annotation=SourceText(" | ".join(types)),
        )


def _generic_arguments() -> Iterator[Parameter]:
    for name in ("device", "name"):
        yield Parameter(
            name, Parameter.KEYWORD_ONLY, default=None, annotation=SourceText("str | None")
        )
