"""Structure of a dataset's elements: the nesting of a pipeline's outputs."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

import tensorflow as tf

from headrace.errors import ArgumentTypeError, ArgumentValueError

_ORDER = "Outputs of the pipeline are assigned to them in the order in which they are written."


def leaves(structure: Any) -> list[Any]:
    """Leaves of nested tuples and dictionaries, in the order in which they are written.

    ``tf.nest.flatten`` sorts the keys of dictionaries.
    """
    if isinstance(structure, Mapping):
        return [leaf for value in structure.values() for leaf in leaves(value)]
    if isinstance(structure, tuple):
        return [leaf for value in structure for leaf in leaves(value)]
    return [structure]


def rebuilt(structure: Any, values: Iterator[Any]) -> Any:
    """`structure` with what the iterator `values` has in place of its leaves."""
    if isinstance(structure, Mapping):
        return {key: rebuilt(value, values) for key, value in structure.items()}
    if isinstance(structure, tuple):
        parts = [rebuilt(value, values) for value in structure]
        return type(structure)(*parts) if hasattr(structure, "_fields") else tuple(parts)
    return next(values)


def checked_dtypes(dtypes: Any, outputs: int) -> Any:
    """The structure of elements: element types, or None where the pipeline says it."""
    if dtypes is None:
        return (None,) * outputs
    for leaf in leaves(dtypes):
        if leaf is not None and not isinstance(leaf, tf.DType):
            raise ArgumentTypeError(
                "`output_dtypes` should be provided as single tf.DType value or a tuple of "
                f"tf.DType values. Got value `{dtypes}` of the type `{type(dtypes).__name__}`. "
                "Dictionaries and nested tuples of them are possible, too, with None where the "
                "pipeline says it."
            )
    if not isinstance(dtypes, (tuple, Mapping)):
        dtypes = (dtypes,)
    if len(leaves(dtypes)) != outputs:
        raise ArgumentValueError(
            f"`output_dtypes` has {len(leaves(dtypes))} elements, {dtypes}, and the pipeline "
            f"{outputs} outputs; give one for each. {_ORDER}"
        )
    return dtypes


def checked_shapes(shapes: Any, dtypes: Any, outputs: int) -> list[Any]:
    """For each output its shape, or a ``RaggedTensorSpec``, or None where nothing was said.

    `dtypes` is the result of `checked_dtypes`.
    """
    if shapes is None:
        return [None] * outputs
    if _is_shape(shapes, outputs):
        found = [shapes]
    else:
        found = _up_to(dtypes, shapes)
    if len(found) != outputs:
        raise ArgumentValueError(
            f"`output_shapes` has {len(found)} elements, {shapes}, and the pipeline {outputs} "
            f"outputs; give one for each. {_ORDER}"
        )
    return [_as_shape(shape) for shape in found]


def _is_shape(shapes: Any, outputs: int) -> bool:
    if isinstance(shapes, tuple):
        return outputs == 1 and all(s is None or hasattr(s, "__index__") for s in shapes)
    return not isinstance(shapes, Mapping)


def _up_to(dtypes: Any, shapes: Any) -> list[Any]:
    """The parts of `shapes` that stand where `dtypes` has a type."""
    if isinstance(dtypes, Mapping):
        if not isinstance(shapes, Mapping) or shapes.keys() != dtypes.keys():
            raise _other_structure(dtypes, shapes)
        return [part for key in dtypes for part in _up_to(dtypes[key], shapes[key])]
    if isinstance(dtypes, tuple):
        if isinstance(shapes, Mapping):
            raise _other_structure(dtypes, shapes)
        if len(shapes) != len(dtypes):
            raise _other_structure(dtypes, shapes)
        return [part for d, s in zip(dtypes, shapes, strict=True) for part in _up_to(d, s)]
    return [shapes]


def _other_structure(dtypes: Any, shapes: Any) -> ArgumentValueError:
    return ArgumentValueError(
        f"`output_shapes` must have the structure of `output_dtypes`: got {shapes} for {dtypes}."
    )


def _as_shape(shape: Any) -> Any:
    if shape is None or isinstance(shape, tf.RaggedTensorSpec):
        return shape
    if isinstance(shape, tf.TensorSpec):
        return shape.shape
    try:
        return tf.TensorShape(shape)
    except TypeError as error:
        raise ArgumentTypeError(
            f"`output_shapes` has {shape!r}; expected a shape such as (64, None, None, 3), "
            "a `tf.TensorShape`, a `tf.RaggedTensorSpec` for samples of different shapes, or None."
        ) from error


def matching_shape(
    required: tuple[int | None, ...], shape: tuple[int, ...]
) -> tuple[int, ...] | None:
    """`shape` without those of its axes of extent 1 that `required`, None for any extent, has not.

    None, if that cannot be, or in more ways than one.
    """
    if all(n == 1 for n in (*shape, *required)):
        return (1,) * len(required)
    found = _matches(required, shape, ())
    return found[0] if len(found) == 1 else None


def _matches(
    required: tuple[int | None, ...], shape: tuple[int, ...], done: tuple[int, ...]
) -> list[tuple[int, ...]]:
    """All ways, with `done` in front."""
    if not shape:
        return [] if required else [done]
    found = []
    if required and required[0] in (None, shape[0]):
        found += _matches(required[1:], shape[1:], (*done, shape[0]))
    if shape[0] == 1:
        found += _matches(required, shape[1:], done)
    return found
