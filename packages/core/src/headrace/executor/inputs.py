"""Check what an operator is about to read against its declaration, before any data is touched."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from headrace.errors import DataTypeError, InputTypeError, LayoutError, ShapeError
from headrace.operators.support.argument_types import FloatListArg, IntListArg
from headrace.operators.support.schema import Arg, Input, OpSchema, Spec
from headrace.types import DALIDataType, is_float
from headrace.types.dtypes import SIDE_TYPES

_OTHER_BYTES = (DALIDataType.INT8, DALIDataType.BOOL)


def declared_input(schema: OpSchema, position: int) -> Input:
    """The declaration of input `position`; the last one serves all inputs of a variadic
    operator.
    """
    return schema.inputs[min(position, len(schema.inputs) - 1)]


def checked(schema: OpSchema, position: int, spec: Spec) -> Spec:
    """`spec` with its layout filled in where the declaration tells it."""
    declared = declared_input(schema, position)
    if spec.dtype in SIDE_TYPES and not (schema.side_data or spec.dtype in declared.dtypes):
        raise InputTypeError(
            f"Input {position} (`{declared.name}`) is side data of type {spec.dtype.name}, which "
            "travels beside tensors and is not computed with: return it from the pipeline. "
            "`fn.decoders.json(..., dtype=...)` makes numbers of text in files."
        )
    spec = _with_layout(schema, declared, position, spec)  # axes come first, as in DALI
    if declared.dtypes and spec.dtype not in declared.dtypes:
        allowed = ", ".join(t.name for t in declared.dtypes)
        # A cast would change bytes of files that were read as signed numbers.
        are_bytes = declared.dtypes == (DALIDataType.UINT8,) and spec.dtype in _OTHER_BYTES
        way = "`fn.reinterpret(..., dtype=types.UINT8)`" if are_bytes else "`fn.cast`"
        raise InputTypeError(
            f"Input {position} (`{declared.name}`) has elements of type {spec.dtype.name}; "
            f"allowed are: {allowed}. Use {way} to convert it."
        )
    return spec


def _with_layout(schema: OpSchema, declared: Input, position: int, spec: Spec) -> Spec:
    layouts = declared.layouts
    if declared.frames_lead:
        _check_frames_lead(declared, position, spec.layout)
    if not layouts or spec.ndim is None:
        return spec
    if not spec.layout:
        for layout in layouts:
            # As in DALI, data with one axis more is taken for a sequence before anything else.
            sequences = schema.frames and "F" not in layout
            for candidate in (layout, "F" + layout) if sequences else (layout,):
                if len(candidate) == spec.ndim:
                    return spec._replace(layout=candidate)
        raise ShapeError(
            f"Input {position} (`{declared.name}`) has no layout. The number of dimensions "
            f"{spec.ndim} does not match any of the allowed layouts: {_listed(schema, layouts)}. "
            "Say what the axes are with `layout=` at the source or with "
            "`fn.reshape(..., layout=...)`."
        )
    plain = spec.layout.replace("F", "", 1) if schema.frames else spec.layout
    if plain not in layouts:
        raise LayoutError(
            f'The layout "{spec.layout}" does not match any of the allowed layouts of input '
            f"{position} (`{declared.name}`): {_listed(schema, layouts)}. `fn.transpose` moves "
            "axes, `fn.reshape(..., layout=...)` renames them."
        )
    return spec


def _check_frames_lead(declared: Input, position: int, layout: str) -> None:
    rest = layout.lstrip("FC")
    if "F" in rest or layout.count("F") > 1:
        raise LayoutError(
            f"For sequences, layout should begin with 'F' or 'C' and have one 'F', got: "
            f'"{layout}" for input {position} (`{declared.name}`). `fn.transpose` moves axes.'
        )


def check_argument(arg: Arg, spec: Spec) -> None:
    """Check the elements of a tensor given for argument `arg`."""
    if spec.dtype in SIDE_TYPES:
        raise DataTypeError(
            f"Argument `{arg.name}` takes {arg.type.name}; what is given for it is side data of "
            f"type {spec.dtype.name}."
        )
    if arg.type.whole and is_float(spec.dtype):
        raise DataTypeError(
            f"Argument `{arg.name}` takes {arg.type.name}; the tensor given for it has elements of "
            f"type {spec.dtype.name}. Use `fn.cast` to convert it."
        )


def is_for_frames(schema: OpSchema, inputs: Sequence[Spec], tensors: Mapping[str, Spec]) -> bool:
    """Return True if an operator for single frames gets sequences."""
    if not schema.frames or not inputs:
        return False
    further = [*inputs[1:], *(tensors.values() if schema.frames_of_args else ())]
    return "F" in inputs[0].layout or any(spec.layout[:1] == "F" for spec in further)


def check_frame_arguments(
    schema: OpSchema, inputs: Sequence[Spec], tensors: Mapping[str, Spec]
) -> None:
    """Check that values for single frames are not taken for the several numbers of one value."""
    if not schema.frames or not inputs:
        return
    for name, spec in tensors.items():
        if spec.layout[:1] == "F" and schema.args[name].type in (IntListArg, FloatListArg):
            raise LayoutError(
                f"Tensor input for argument {name} is specified per frame (got F layout). In "
                "that case, samples in the input 0 must contain frames too. Got layout "
                f"`{inputs[0].layout}` that does not contain frames. Leave out `fn.per_frame`, or "
                "name the frames of the input with `fn.reshape(..., layout=...)`."
            )


def _listed(schema: OpSchema, layouts: tuple[str, ...]) -> str:
    text = ", ".join(f'"{layout}"' for layout in layouts)
    return text + (" or sequences (F) of these" if schema.frames else "")
