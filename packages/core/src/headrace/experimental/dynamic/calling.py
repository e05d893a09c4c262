"""Calls operators: checks arguments, infers types of results, and evaluates now or later."""

from __future__ import annotations

import sys
import weakref
from collections.abc import Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, Self

import numpy as np

from headrace.errors import (
    ArgumentValueError,
    MisusedArgumentError,
    NotYetSupportedError,
)
from headrace.executor.fallback import absence
from headrace.experimental.dynamic.arguments import PLAIN, element_type, key_of, made
from headrace.experimental.dynamic.contexts import EvalContext
from headrace.experimental.dynamic.devices import Device
from headrace.experimental.dynamic.devices import device as as_device
from headrace.experimental.dynamic.failures import user_frame
from headrace.experimental.dynamic.invocations import Invocation
from headrace.experimental.dynamic.modes import THREAD, EvalMode
from headrace.experimental.dynamic.operations import OPERATIONS, ConfiguredOperator
from headrace.experimental.dynamic.rng import resolve_rng
from headrace.experimental.dynamic.sizes import checked_size
from headrace.experimental.dynamic.values import ValueReference
from headrace.graph.capture import wanted_device
from headrace.graph.misuse import instead_of
from headrace.graph.on_cpu import check_on_cpu
from headrace.operators.support.composite import without_none
from headrace.operators.support.operator import BatchOperator
from headrace.operators.support.registry import find

if TYPE_CHECKING:
    from headrace.operators.support.schema import OpSchema

_deferred, _eager = EvalMode.deferred, EvalMode.eager
_KNOWN = frozenset((*PLAIN, float, list, tuple, np.ndarray))
"""Types that are nothing but constants."""
_TRIFLE_SECONDS = 1e-5
"""Work that takes less is not worth the way to the background."""


class TensorHandle:
    """Base of `Tensor` and `Batch`: one output of a call, or data that is there.

    Attributes
    ----------
    _reference
        The data, or who makes it.
    """

    __slots__ = ("__weakref__", "_reference")
    _reference: ValueReference

    if TYPE_CHECKING:  # `arithmetic.install_operators` makes them

        def _binary(self, other: Any, /) -> Self: ...
        def _unary(self) -> Self: ...

        __add__ = __sub__ = __mul__ = __truediv__ = __floordiv__ = __mod__ = __pow__ = _binary
        __radd__ = __rsub__ = __rmul__ = __rtruediv__ = __rfloordiv__ = __rmod__ = _binary
        __and__ = __or__ = __xor__ = __lshift__ = __rshift__ = __rpow__ = _binary
        __rand__ = __ror__ = __rxor__ = __rlshift__ = __rrshift__ = _binary
        __lt__ = __le__ = __gt__ = __ge__ = _binary
        __eq__ = __ne__ = _binary  # type: ignore[assignment]
        __neg__ = __pos__ = __abs__ = __invert__ = _unary

    else:

        def __getattr__(self, name):
            try:
                return object.__getattribute__(self, name)  # raises, also what a property has
            except AttributeError as error:
                if name.startswith("_") or hasattr(type(self), name):
                    raise
                way = instead_of(name).replace("`math.", "`fn.math.").replace("`fn.", "`ndd.")
                raise AttributeError(
                    f"{error}. Operators are functions of `headrace.experimental.dynamic`{way}; "
                    "`np.asarray` and `.torch()` make an array of it for other libraries.",
                    name=name,
                    obj=self,
                ) from None

    @property
    def _invocation_result(self) -> Any:
        """Object whose `_results` DALI programs check for None to see whether the work is done:
        `_invocation`.
        """
        results = None if self._reference.value is None else (self,)
        return SimpleNamespace(_invocation=SimpleNamespace(_results=results))

    def _hold(self) -> None:
        """Note that this object, and maybe others as well, may ask for the value."""
        reference = self._reference
        if reference.handle is None:
            reference.handle = weakref.ref(self)
        else:
            reference.uses.append(None)  # it is always kept, as there is no telling who is left


_tensor_class: Any = None
_batch_class: Any = None
_as_input: Any = None


def install(tensor_class: Any, batch_class: Any, as_input: Any) -> None:
    """Set the classes of results, and the function that makes an input of other data."""
    global _tensor_class, _batch_class, _as_input
    _tensor_class, _batch_class, _as_input = tensor_class, batch_class, as_input


def as_tensor(value: Any) -> Any:
    """A tensor of data that an operator was given."""
    return _as_input(value, None)


def handle_of(reference: ValueReference) -> Any:
    """A `Tensor` or `Batch` for the data of a reference, beside those that there are."""
    found = object.__new__(_tensor_class if reference.size is None else _batch_class)
    found._reference = reference
    found._hold()
    return found


def kept(handle: Any) -> ValueReference:
    """The reference of `handle`; its value is stored even where no result refers to it yet."""
    handle._hold()
    return handle._reference  # type: ignore[no-any-return]


def call(
    schema: OpSchema,
    inputs: Sequence[Any],
    batch_size: int | None,
    device: Any,
    arguments: dict[str, Any],
    rng: Any = None,
) -> Any:
    """Call an operator."""
    size = None if batch_size is None else checked_size(batch_size, least=0)
    references = []
    on_gpu = False
    for value in inputs:
        if not isinstance(value, TensorHandle):
            if value is None:
                continue
            value = _as_input(value, schema)
        reference = value._reference
        references.append(reference)
        other = reference.size
        if other is not None and other != size:
            size = common_size(schema, size, other)
        if reference.device != "cpu":
            on_gpu = True
    tensors: list[tuple[str, ValueReference]] | None = None
    if arguments:
        key: list[Any] = [schema.cls, schema.name, len(references)]
        constants: Any = None
        for name, value in arguments.items():
            kind = type(value)
            if kind in PLAIN:
                key.append((name, kind, value))
            elif isinstance(value, TensorHandle):
                reference = value._reference
                if tensors is None:
                    tensors = []
                tensors.append((name, reference))
                other = reference.size
                if other is not None and other != size:
                    size = common_size(schema, size, other)
                key.append((name, TensorHandle))
            else:
                if kind not in _KNOWN and hasattr(value, "__dlpack__"):
                    value = np.asarray(value) if _is_on_cpu(value) else _as_input(value, schema)
                    if constants is None:
                        constants = dict(arguments)
                    constants[name] = value
                    if isinstance(value, TensorHandle):
                        tensors = [*(tensors or ()), (name, value._reference)]
                        key.append((name, TensorHandle))
                        continue
                part = key_of(value)
                if type(part) is list:
                    part = key_of(element_type(schema, name, value))
                key.append((name, part))
        if tensors is not None and len(tensors) > 1:
            tensors.sort(key=_name)
        if constants is None:
            constants = arguments
    else:
        constants = arguments
        key = [schema.cls, schema.name, len(references)]
    if size is None and not schema.inputs and issubclass(schema.cls, BatchOperator):
        raise ArgumentValueError(
            f"`batch_size` must be specified: `ndd.{schema.name}` has no inputs that tell it."
        )
    where = "cpu" if device is None and not on_gpu else _device(schema, device)
    key.append(where)
    operation = None
    structure = tuple(key)
    try:
        operation = OPERATIONS.get(structure)
    except TypeError:  # nothing that could be looked up
        structure = ()
    if operation is None:
        if tensors is not None:
            constants = {k: v for k, v in constants.items() if not isinstance(v, TensorHandle)}
        operation = made(schema, where, constants, tensors or (), len(references))
        if structure:
            operation = OPERATIONS.add(structure, operation)
    if on_gpu or where != "cpu":
        references = on_device(schema, where, references, inputs, move=device is not None)
    if tensors is not None:
        for number, (name, reference) in enumerate(tensors):
            if reference.device != "cpu":
                tensors[number] = name, copied(reference, "cpu")
    seed = resolve_rng(rng).draw_seed() if schema.random else 0
    return invoke(
        operation, tuple(references), () if tensors is None else tuple(tensors), size, seed
    )


def compose(
    schema: OpSchema,
    inputs: Sequence[Any],
    batch_size: int | None,
    device: Any,
    arguments: dict[str, Any],
    rng: Any = None,
) -> Any:
    """Call the operators that a `Composite` is made of."""
    handles = [
        v if v is None or isinstance(v, TensorHandle) else _as_input(v, schema) for v in inputs
    ]
    data = {k: v for k, v in arguments.items() if isinstance(v, TensorHandle)}
    constants = {k: v for k, v in arguments.items() if k not in data}
    tensors = [(name, value._reference) for name, value in data.items()]
    args = made(schema, "cpu", constants, tensors, len(handles)).args
    op: Any = schema.cls({**args, **data, "device": device})
    op.check_known(len(handles))

    def do(name: str, /, *inputs: Any, device: Any = None, **arguments: Any) -> Any:
        found = find(name)
        return call(found, inputs, batch_size, device, without_none(arguments), rng)

    found = op.compose(do, *handles)
    return tuple(found) if isinstance(found, list) else found


def invoke(
    operation: ConfiguredOperator,
    references: tuple[ValueReference, ...],
    tensors: tuple[tuple[str, ValueReference], ...],
    size: int | None,
    seed: Any = 0,
) -> Any:
    """Apply an operation to data of the right device, when the mode in force says."""
    if THREAD.capture is not None:
        return THREAD.capture.invoke(operation, references, tensors, size, seed)
    ready = True
    external = False
    specs = []
    for reference in references:
        specs.append(reference.spec)
        value = reference.value
        if value is None:
            ready = False
        elif value.external:
            external = True
    types = []
    for name, reference in tensors:
        types.append((name, reference.spec))
        value = reference.value
        if value is None:
            ready = False
        elif value.external:
            external = True
    key = (tuple(specs), tuple(types))
    bound = operation.bound.get(key)
    if bound is None:
        bound = operation.bind(*key)
    mode = THREAD.mode
    if size is None and ready and mode is not _deferred:
        runner = bound.runner
        if runner is not None and (
            mode is not _eager or external or runner.seconds < _TRIFLE_SECONDS
        ):
            found = _done_at_once(runner, references, tensors, seed)
            if found is not None:
                return found
    context = THREAD.context
    if context is None:
        context = EvalContext.default()
    frame = user_frame(sys._getframe(1))
    for number, reference in enumerate(references):
        if reference.device != "cpu" and reference.device != context._device_id:
            raise _elsewhere(operation, number, reference, context)
    evaluator = context._evaluator
    invocation = Invocation(bound, references, tensors, size, seed, evaluator, frame)
    make = object.__new__
    cls = _tensor_class if size is None else _batch_class
    results = []
    for reference in invocation.references:
        result = make(cls)
        result._reference = reference
        reference.handle = weakref.ref(result)
        results.append(result)
    if external:
        # The owner of the memory may write to it as soon as this call returns.
        invocation.mode = mode
        evaluator.run_now(invocation)
        if invocation.error is not None and mode is not _eager and mode is not _deferred:
            raise invocation.error
        if invocation.error is None and operation.device != "cpu":
            _await_reading(references, invocation.references)
    elif mode is _eager:
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
    if operation.schema.is_typed_late(operation.args):
        for reference in invocation.references:  # what it is shows only when it is there
            reference.spec = reference.get().spec
    if len(results) == 1:
        return results[0]
    return tuple(results) if results else None


def _await_reading(
    references: tuple[ValueReference, ...], results: tuple[ValueReference, ...]
) -> None:
    """Wait until the GPU has read inputs that it copies from where their owner has them."""
    values = [result.value for result in results]
    queued = next((v for v in values if v is not None and v.event is not None), None)
    if queued is None or queued.batch is None:
        return
    runtime = queued.batch.runtime
    for value in [reference.value for reference in references]:
        if value is not None and value.external and value.batch is None:
            first = next((row for row in value.rows if row.nbytes), None)
            if first is not None and runtime.is_page_locked(first.ctypes.data):
                queued.event.synchronize()
                return


def _elsewhere(
    operation: ConfiguredOperator, number: int, reference: ValueReference, context: EvalContext
) -> Exception:
    """Make the error for an input on another GPU than the context's."""
    here = "no GPU" if context.device_id is None else f"GPU {context.device_id}"
    way_out = "" if context.device_id is None else f", and `.gpu({context.device_id})` moves data"
    return MisusedArgumentError(
        f"Input {number} of `ndd.{operation.schema.name}` is on GPU {reference.device}, but the "
        f"EvalContext in force works on {here}. "
        f"`with ndd.EvalContext(device_id={reference.device}):` works where the data is{way_out}."
    )


def _done_at_once(
    runner: Any,
    references: tuple[ValueReference, ...],
    tensors: tuple[tuple[str, ValueReference], ...],
    seed: Any,
) -> Any:
    """The outputs for a single sample that is there; `None` if that fails.

    An error is not raised here: the regular call that follows meets it again and names its place.
    """
    try:
        if tensors:
            values = runner.run_with(references, tensors, seed)
        elif len(references) == 1:
            values = runner.run((references[0].value,), seed=seed)
        else:
            values = runner.run([reference.value for reference in references], seed=seed)
    except Exception:
        return None
    results = []
    for value in values:
        result = object.__new__(_tensor_class)
        reference = result._reference = ValueReference(value.spec, None, value)
        reference.handle = weakref.ref(result)
        results.append(result)
    return results[0] if len(results) == 1 else tuple(results)


def _is_on_cpu(array: Any) -> bool:
    """True if an array of some library is in host memory."""
    return int(array.__dlpack_device__()[0]) in (1, 3)


def _name(argument: tuple[str, ValueReference]) -> str:
    return argument[0]


def common_size(schema: OpSchema, size: int | None, other: int) -> int:
    """The number of samples, which is `other` in one place."""
    if size is None:
        return other
    raise MisusedArgumentError(
        f"Inconsistent batch size in `ndd.{schema.name}`: {size} != {other}. All batches among the "
        "inputs and arguments, and `batch_size`, must have the same number of samples: a call "
        "cannot change batch size."
    )


def _device(schema: OpSchema, device: Any) -> str:
    """The device an operator runs on, as graphs name it: ``"cpu"``, ``"gpu"`` or ``"mixed"``."""
    if device is None:
        kind = "gpu"
    else:
        found = as_device("gpu" if isinstance(device, str) and device == "mixed" else device)
        assert found is not None
        kind = found.device_type
        if kind == "cpu" and (reason := absence()):
            check_on_cpu(schema, f"`ndd.{schema.name}`", reason)
    if kind == "gpu":
        from headrace.tensors.gpu.runtime import check_available

        check_available()
        if "gpu" not in schema.devices and "mixed" in schema.devices:
            kind = "mixed"
        if kind not in schema.devices:
            raise MisusedArgumentError(
                f'Operator `ndd.{schema.name}` has no "gpu" variant; it runs on: '
                f"{', '.join(schema.devices)}. `.cpu()` moves data to the CPU."
            )
        if not schema.cls.has_gpu():
            raise NotYetSupportedError(
                f"`ndd.{schema.name}` on the GPU is to come; this version has it on the CPU. Move "
                "its inputs there by `.cpu()`, and the result back by `.gpu()`."
            )
    return kind


def on_device(
    schema: OpSchema,
    kind: str,
    references: list[ValueReference],
    given: Sequence[Any],
    *,
    move: bool,
) -> list[ValueReference]:
    """The inputs, each where an operator wants it."""
    found = []
    values = [value for value in given if value is not None]
    for position, reference in enumerate(references):
        wanted = wanted_device(schema, kind, position)
        here = "cpu" if reference.device == "cpu" else "gpu"
        if wanted == "any" and schema.is_expression:
            wanted = kind
        if wanted not in ("any", here):
            literal = isinstance(values[position], (bool, int, float, list, tuple))
            if not (move or literal or schema.takes_any_device or wanted == "cpu" != kind):
                raise MisusedArgumentError(
                    f"Cannot mix GPU and CPU inputs: input {position} of `ndd.{schema.name}` is on "
                    f"the {here.upper()}. `.{wanted}()` moves it to the others, and `device=` says "
                    "where to run."
                )
            reference = copied(reference, wanted)
        found.append(reference)
    return found


def copied(reference: ValueReference, device: str, number: int | None = None) -> ValueReference:
    """The data of a reference on another device: ``"cpu"`` or ``"gpu"``."""
    here = reference.device
    if device == "cpu":
        assert isinstance(here, int)
        return _copied(reference, "_copy_to_cpu", here)
    if here != "cpu":
        reference = copied(reference, "cpu")
    return _copied(reference, "_copy_to_gpu", number)


def _copied(reference: ValueReference, name: str, number: int | None) -> ValueReference:
    operation = OPERATIONS.get((name,))
    if operation is None:
        schema = find(name)
        operation = OPERATIONS.add((name,), made(schema, schema.devices[0], {}, (), 1))
    context = EvalContext.current()
    if number is None or context.device_id == number:
        return kept(invoke(operation, (reference,), (), reference.size))
    outside = THREAD.context
    with Device("gpu", number):
        THREAD.context = EvalContext.default()
        try:
            return kept(invoke(operation, (reference,), (), reference.size))
        finally:
            THREAD.context = outside
