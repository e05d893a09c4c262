"""What happens when an operator is called: checks, types of the results, who does the work."""

from __future__ import annotations

import sys
import warnings
import weakref
from collections.abc import Sequence
from types import FrameType
from typing import TYPE_CHECKING, Any

import numpy as np

from penstock.errors import (
    ArgumentChoiceError,
    ArgumentTypeError,
    ArgumentValueError,
    ConversionError,
    MisusedArgumentError,
    NotYetSupportedError,
)
from penstock.experimental.dynamic.contexts import EvalContext
from penstock.experimental.dynamic.dtypes import DType
from penstock.experimental.dynamic.invocations import Invocation
from penstock.experimental.dynamic.modes import THREAD, EvalMode
from penstock.experimental.dynamic.operations import OPERATIONS, Operation
from penstock.experimental.dynamic.rng import resolve_rng
from penstock.experimental.dynamic.slots import Slot
from penstock.graph.capture import wanted_device
from penstock.graph.user_line import _PACKAGE, stack_level
from penstock.operators.registry import find
from penstock.types import DALIDataType

if TYPE_CHECKING:
    from penstock.operators.schema import Arg, OpSchema

_NOT_ARGUMENTS = frozenset(("preserve", "seed", "bytes_per_sample_hint"))
_deferred, _eager = EvalMode.deferred, EvalMode.eager


class Holder:
    """Base of `Tensor` and `Batch`: one output of a call, or data that is there.

    Attributes
    ----------
    _slot
        The data, or who makes it.
    """

    __slots__ = ("__weakref__", "_slot")
    _slot: Slot

    def _hold(self) -> None:
        """Note that this object, and maybe others as well, may ask for the value."""
        slot = self._slot
        if slot.holder is None:
            slot.holder = weakref.ref(self)
        else:
            slot.uses.append(None)  # it is always kept, as there is no telling who is left


_tensor_class: Any = None
_batch_class: Any = None
_as_input: Any = None


def install(tensor_class: Any, batch_class: Any, as_input: Any) -> None:
    """Say what slots become for users, and how other data becomes an input."""
    global _tensor_class, _batch_class, _as_input
    _tensor_class, _batch_class, _as_input = tensor_class, batch_class, as_input


def as_tensor(value: Any) -> Any:
    """A tensor of data that an operator was given."""
    return _as_input(value, None)


def holder_of(slot: Slot) -> Any:
    """A `Tensor` or `Batch` for the data of a slot, beside those that there are."""
    found = object.__new__(_tensor_class if slot.size is None else _batch_class)
    found._slot = slot
    found._hold()
    return found


def call(
    schema: OpSchema,
    inputs: Sequence[Any],
    batch_size: int | None,
    device: Any,
    arguments: dict[str, Any],
    rng: Any = None,
    raw: bool = False,
) -> Any:
    """Call an operator.

    Parameters
    ----------
    schema
        Its declaration.
    inputs
        `Tensor`, `Batch`, or data that a tensor can be made of.
    batch_size
        Number of samples, where no input says it.
    device
        Where to work; where the inputs are when not given.
    arguments
        Keyword arguments; those that are `Tensor` or `Batch` have a value for each sample.
    rng
        Where random numbers come from.

    Returns
    -------
    Tensor, Batch, tuple or None
        The outputs.
    """
    frame = sys._getframe(1)
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    size = batch_size
    external = False
    slots = []
    for value in inputs:
        if not isinstance(value, Holder):
            if value is None:
                continue
            value = _as_input(value, schema)
        slot = value._slot
        slots.append(slot)
        if slot.size is not None and slot.size != size:
            size = _common_size(schema, size, slot.size)
        if slot.value is not None and getattr(slot.value, "external", False):
            external = True
    constants = arguments
    tensors: list[tuple[str, Slot]] = []
    for name, value in arguments.items():
        if isinstance(value, Holder):
            if constants is arguments:
                constants = dict(arguments)
            del constants[name]
            slot = value._slot
            tensors.append((name, slot))
            if slot.size is not None and slot.size != size:
                size = _common_size(schema, size, slot.size)
            if slot.value is not None and getattr(slot.value, "external", False):
                external = True
        elif isinstance(value, DType):
            if constants is arguments:
                constants = dict(arguments)
            constants[name] = value.type_id
    kind = "cpu" if device is None and not _any_on_gpu(slots) else _device(schema, device, slots)
    if tensors:
        tensors.sort(key=_name)
    operation = _operation(schema, kind, constants, tensors, len(slots))
    if kind != "cpu":
        slots = _moved(schema, kind, slots, inputs, frame)
    form = operation.form(
        tuple([slot.spec for slot in slots]),
        tuple([(name, slot.spec) for name, slot in tensors]) if tensors else (),
    )
    seed = resolve_rng(rng).draw_seed() if schema.random else 0
    return dispatch(form, tuple(slots), tuple(tensors), size, seed, frame, external)


def user_frame(frame: FrameType) -> FrameType:
    """The first frame from `frame` on that is not the library's own."""
    while frame.f_code.co_filename.startswith(_PACKAGE) and frame.f_back is not None:
        frame = frame.f_back
    return frame


def dispatch(
    form: Any,
    slots: tuple[Slot, ...],
    tensors: tuple[tuple[str, Slot], ...],
    size: int | None,
    seed: int,
    frame: FrameType,
    external: bool = False,
) -> Any:
    """Make the results of a call, and have the work done as the mode in force says."""
    context = THREAD.context
    if context is None:
        context = EvalContext.default()
    evaluator = context._evaluator
    invocation = Invocation(form, slots, tensors, size, seed, evaluator, frame)
    make = object.__new__
    cls = _tensor_class if size is None else _batch_class
    results = []
    for slot in invocation.slots:
        result = make(cls)
        result._slot = slot
        slot.holder = weakref.ref(result)
        results.append(result)
    mode = THREAD.mode
    if external:
        # Whoever owns the memory may write to it as soon as this call returns.
        mode = EvalMode.sync_cpu
    if mode is _eager:
        invocation.mode = mode
        evaluator.submit(invocation)
    elif mode is _deferred:
        invocation.mode = mode
        context._deferred.add(invocation)
    else:
        evaluator.run_now(invocation)
        if invocation.error is not None:
            raise invocation.error
        if mode is EvalMode.sync_full:
            evaluator.synchronize()
    if len(results) == 1:
        return results[0]
    return tuple(results) if results else None


def _name(argument: tuple[str, Slot]) -> str:
    return argument[0]


def _any_on_gpu(slots: Sequence[Slot]) -> bool:
    return any(slot.device != "cpu" for slot in slots)


def _common_size(schema: OpSchema, size: int | None, other: int) -> int:
    if size is None:
        return other
    raise ArgumentValueError(
        f"Inconsistent batch size in `ndd.{schema.name}`: {size} != {other}. All batches among the "
        "inputs and arguments, and `batch_size`, must have the same number of samples."
    )


def _device(schema: OpSchema, device: Any, slots: Sequence[Slot]) -> str:
    """The device an operator runs on, as graphs name it: ``"cpu"``, ``"gpu"`` or ``"mixed"``."""
    if device is None:
        kind = "gpu"
    else:
        from penstock.experimental.dynamic.devices import device as as_device

        if isinstance(device, str) and device == "mixed":
            kind = "gpu"
        else:
            found = as_device(device)
            assert found is not None
            kind = found.device_type
    if kind == "gpu":
        from penstock.tensors.gpu.runtime import check_available

        check_available()
        if "gpu" not in schema.devices and "mixed" in schema.devices:
            kind = "mixed"
        if kind not in schema.devices:
            raise MisusedArgumentError(
                f'Operator `ndd.{schema.name}` has no "gpu" variant; it runs on: '
                f"{', '.join(schema.devices)}. `.cpu()` moves data to the CPU."
            )
        if not schema.has_gpu:
            raise NotYetSupportedError(
                f"`ndd.{schema.name}` on the GPU is to come; this version has it on the CPU. Move "
                "its inputs there by `.cpu()`, and the result back by `.gpu()`."
            )
    return kind


def _moved(
    schema: OpSchema, kind: str, slots: list[Slot], given: Sequence[Any], frame: FrameType
) -> list[Slot]:
    """The inputs, each where an operator on a GPU wants it."""
    found = []
    values = [value for value in given if value is not None]
    for position, slot in enumerate(slots):
        wanted = wanted_device(schema, kind, position)
        here = "cpu" if slot.device == "cpu" else "gpu"
        if wanted not in ("any", here):
            literal = not isinstance(values[position], Holder)
            if not (literal or schema.takes_any_device or wanted == "cpu"):
                raise MisusedArgumentError(
                    f"Cannot mix GPU and CPU inputs: input {position} of `ndd.{schema.name}` on "
                    f"the GPU is on the CPU. `.gpu()` moves it there."
                )
            slot = copied(slot, wanted, frame)
        found.append(slot)
    return found


def copied(slot: Slot, device: str, frame: FrameType) -> Slot:
    """The data of a slot on the other device."""
    schema = find("_copy_to_gpu" if device == "gpu" else "_copy_to_cpu")
    operation = _operation(schema, schema.devices[0], {}, (), 1)
    form = operation.form((slot.spec,), ())
    return dispatch(form, (slot,), (), slot.size, 0, frame)._slot  # type: ignore[no-any-return]


def _operation(
    schema: OpSchema,
    device: str,
    constants: dict[str, Any],
    tensors: Sequence[tuple[str, Slot]],
    inputs: int,
) -> Operation:
    try:
        key: Any = (
            schema,
            device,
            inputs,
            tuple([name for name, _ in tensors]) if tensors else None,
            tuple([(name, _key(value)) for name, value in constants.items()]),
        )
        found = OPERATIONS.get(key)
    except TypeError:  # nothing that could be looked up
        return _made(schema, device, constants, tensors, inputs)
    if found is None:
        found = OPERATIONS.add(key, _made(schema, device, constants, tensors, inputs))
    return found  # type: ignore[no-any-return]


def _key(value: Any) -> Any:
    """`value` such that values which operators could tell apart are not equal."""
    kind = type(value)
    if kind is float:
        return (float, value) if value else (float, str(value))  # 0.0 == -0.0
    if kind is list or kind is tuple:
        return kind, tuple([_key(v) for v in value])
    if kind is np.ndarray:
        return kind, value.dtype, value.shape, value.tobytes()
    return kind, value


def _made(
    schema: OpSchema,
    device: str,
    constants: dict[str, Any],
    tensors: Sequence[tuple[str, Slot]],
    inputs: int,
) -> Operation:
    """Check the arguments of a call and convert the constant ones."""
    name = schema.name.rpartition(".")[2]
    _check_input_count(schema, name, inputs)
    if schema.deprecated is not None:
        warnings.warn(
            f"`ndd.{schema.name}` is deprecated; use `{schema.deprecated}`.",
            DeprecationWarning,
            stacklevel=stack_level(),
        )
    args = {a.name: (None if a.required else a.default) for a in schema.args.values()}
    given = set()
    for key, value in constants.items():
        arg = _declared(schema, key, name)
        if value is None:
            continue
        given.add(key)
        args[key] = converted_argument(schema, arg, value)
    for key, slot in tensors:
        arg = _declared(schema, key, name)
        given.add(key)
        _check_tensor_argument(schema, arg, slot)
        args[key] = None
    for arg in schema.args.values():
        if arg.required and arg.name not in given:
            raise ArgumentTypeError(
                f"{name}() missing 1 required keyword-only argument: '{arg.name}'. {arg.doc}"
            )
    return Operation(schema, device, args)


def _check_input_count(schema: OpSchema, name: str, count: int) -> None:
    low = schema.min_inputs
    high = (schema.max_inputs or 999) if schema.variadic else len(schema.inputs)
    if count < low:
        missing = schema.inputs[min(count, len(schema.inputs) - 1)].name
        raise ArgumentTypeError(
            f"{name}() missing {low - count} required positional "
            f"argument{'' if low - count == 1 else 's'}: '{missing}'"
        )
    if count > high:
        raise ArgumentTypeError(
            f"{name}() takes {high} positional argument{'' if high == 1 else 's'}, but {count} "
            "were given"
        )


def _declared(schema: OpSchema, key: str, name: str) -> Arg:
    arg = schema.args.get(key)
    if arg is None or key in _NOT_ARGUMENTS:
        known = ", ".join(a for a in schema.args if a not in _NOT_ARGUMENTS)
        raise ArgumentTypeError(
            f"{name}() got an unexpected keyword argument '{key}'. It takes: {known or 'none'}."
        )
    return arg


def converted_argument(schema: OpSchema, arg: Arg, value: Any) -> Any:
    """The value of a constant argument, as operators take it."""
    place = f"Argument `{arg.name}` of `ndd.{schema.name}`"
    if value is bool and arg.type.name == "DALIDataType":
        value = DALIDataType.BOOL
    try:
        converted = arg.type.constant(value)
    except (TypeError, ValueError) as error:
        raise ConversionError(f"{place}: {error}.") from error
    if arg.choices and converted not in arg.choices:
        allowed = ", ".join(repr(c) for c in arg.choices)
        raise ArgumentChoiceError(f"{place}: {converted!r} is not one of {allowed}.")
    if arg.unsupported is not None and converted != arg.default:
        raise NotYetSupportedError(f"{place}: {arg.unsupported}.")
    if arg.deprecated is not None:
        instead = f"; use `{arg.deprecated}`" if arg.deprecated else " and has no effect"
        warnings.warn(
            f"{place} is deprecated{instead}.", DeprecationWarning, stacklevel=stack_level()
        )
    if converted is DALIDataType.NO_TYPE and arg.default is None:
        return None
    return converted


def _check_tensor_argument(schema: OpSchema, arg: Arg, slot: Slot) -> None:
    place = f"Argument `{arg.name}` of `ndd.{schema.name}`"
    if not arg.per_sample:
        raise ArgumentTypeError(
            f"{place} must be the same for all samples: it takes {arg.type.name}, not a Tensor or "
            "a Batch."
        )
    if slot.device != "cpu":
        raise MisusedArgumentError(f"{place} must be on the CPU; `.cpu()` moves it there.")
