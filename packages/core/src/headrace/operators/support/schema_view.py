"""Declarations as programs that look at DALI's schemas see them."""

from __future__ import annotations

from collections.abc import Iterator
from inspect import Parameter, Signature

from headrace.errors import ArgumentValueError, UnknownNameError
from headrace.operators.support import registry
from headrace.operators.support.listed import Listed
from headrace.operators.support.schema import RANDOM_STATE, Arg, Input, OpSchema
from headrace.operators.support.signature import (
    VARIADIC,
    Api,
    call_signature_for,
    class_name,
    signature_for,
)
from headrace.types import DALIDataType
from headrace.types.enums import DALIEnum

_TYPES = {
    "int": DALIDataType.INT32,
    "float": DALIDataType.FLOAT,
    "bool": DALIDataType.BOOL,
    "str": DALIDataType.STRING,
    "int or list of int": DALIDataType._INT32_VEC,
    "float or list of float": DALIDataType._FLOAT_VEC,
    "float or nested list of float": DALIDataType._FLOAT_VEC,
    "str or list of str": DALIDataType._STRING_VEC,
    "DALIDataType": DALIDataType.DATA_TYPE,
    "DALIImageType": DALIDataType.IMAGE_TYPE,
    "DALIInterpType": DALIDataType.INTERP_TYPE,
    "layout": DALIDataType.TENSOR_LAYOUT,
    "state of a generator": DALIDataType.UINT32,
}


_LISTED_BY_DALI = {"_ArithmeticGenericOp", "_Shape", "_SubscriptDimCheck", "_TensorSubscript"}


def schema_name(schema: OpSchema | Listed) -> str:
    """DALI's name of the schema: ``"Resize"``, ``"readers__File"``."""
    return "__".join((*filter(None, schema.module.split(".")), class_name(schema)))


def find_view(name: str) -> SchemaView | None:
    """The view of the operator that DALI calls `name`, if there is one."""
    for entry in registry.listed():
        if schema_name(entry) == name:
            return SchemaView(registry.find(entry.name))
    return None


def find_schema(name: str) -> OpSchema:
    """The declaration of the operator that DALI calls `name`."""
    found = find_view(name)
    if found is None:
        raise UnknownNameError(f"Schema for operator '{name}' not registered.")
    return found._schema


def function_name(name: str) -> str:
    """Name below ``fn`` of what DALI calls `name`: ``"readers.file"`` of ``"readers__File"``."""
    function = find_schema(name).name
    return function if name.startswith("_") else function.removeprefix("_")  # those of plugins


def names_on(device: str, *, internal: bool = False) -> Iterator[str]:
    """DALI's names of the operators that run on `device`; also those of the library's own if
    asked.
    """
    for schema in registry.all_schemas():
        name = schema_name(schema)
        own = schema.module == "" and name.startswith("_") and name not in _LISTED_BY_DALI
        if device in _devices(schema) and (internal or not own):
            yield name


def _devices(schema: OpSchema) -> list[str]:
    return [d for d in schema.devices if d == "cpu" or schema.cls.has_gpu()]


class SchemaView:
    """Declaration of an operator, by the names of DALI's methods.

    Default values of lists, and the types of a few arguments, are those of Python, not of C++.
    Methods that take the name of an argument raise `UnknownNameError` (a `KeyError`) where there is
    no such argument, but for those that begin with ``Has`` and ``Is``.
    """

    def __init__(self, schema: OpSchema) -> None:
        self._schema = schema

    def __repr__(self) -> str:
        return f"<schema of the operator {self.Name()!r}>"

    def _arg(self, name: str) -> Arg:
        try:
            return self._schema.args[name]
        except KeyError:
            raise UnknownNameError(
                f'Argument "{name}" is not defined for operator "{self.Name()}".'
            ) from None

    def _input(self, index: int) -> Input:
        inputs = self._schema.inputs
        if self._schema.variadic:
            index = min(index, len(inputs) - 1)
        if not 0 <= index < len(inputs):
            raise ArgumentValueError(
                f'Operator "{self.Name()}" has no input {index}; it has {len(inputs)}.'
            )
        return inputs[index]

    def Name(self) -> str:
        """Name of the schema: ``"readers__File"``."""
        return schema_name(self._schema)

    def OperatorName(self) -> str:
        """Name of the class below ``ops``: ``"File"``."""
        return class_name(self._schema)

    def ModulePath(self) -> list[str]:
        """Modules below ``ops`` that it is in: ``["readers"]``."""
        return [part for part in self._schema.module.split(".") if part]

    def Dox(self) -> str:
        """Documentation of the operator."""
        return self._schema.doc

    def MinNumInput(self) -> int:
        """Number of inputs that must be given."""
        return self._schema.min_inputs

    def MaxNumInput(self) -> int:
        """Number of inputs that may be given."""
        return self._schema.max_inputs or len(self._schema.inputs)

    def GetInputName(self, index: int) -> str:
        """Name of an input."""
        return self._input(index).name

    def GetInputDox(self, index: int) -> str:
        """Documentation of an input."""
        return self._input(index).doc

    def GetInputDevice(
        self, index: int, actual_device: str | None, operator_device: str | None
    ) -> str | None:
        """Device that the operator takes an input from; data elsewhere is copied there.

        Parameters
        ----------
        index
            Number of the input.
        actual_device
            Where the data is, None if that is not known.
        operator_device
            Where the operator runs, None if that is not known.
        """
        schema = self._schema
        declared = self._input(index).device
        if declared == "any" or schema.reads_metadata or schema.takes_any_device:
            return actual_device or operator_device
        if declared is None or actual_device is None or "gpu" not in schema.devices:
            return operator_device
        # Operators on the GPU that read it on the host take it from either place.
        return actual_device if operator_device in (None, "gpu") else "cpu"

    def GetSupportedLayouts(self, index: int) -> list[str]:
        """Layouts that an input may have; none where any will do."""
        return list(self._input(index).layouts)

    def GetSupportedBackends(self) -> list[str]:
        """Devices it runs on: ``"cpu"``, ``"gpu"``, ``"mixed"``."""
        return _devices(self._schema)

    def GetArgumentNames(self) -> list[str]:
        """Names of the arguments, old ones among them, in alphabetical order."""
        return sorted(self._schema.shown_args)

    def HasArgument(self, name: str) -> bool:
        """True if there is an argument of that name."""
        return name in self._schema.args

    def IsArgumentOptional(self, arg_name: str) -> bool:
        """True if an argument may be left out."""
        return self.HasArgument(arg_name) and not self._arg(arg_name).required

    def IsTensorArgument(self, name: str) -> bool:
        """True if an argument may differ from sample to sample."""
        return self.HasArgument(name) and self._arg(name).per_sample

    def ArgSupportsPerFrameInput(self, name: str) -> bool:
        """True if an argument may differ from frame to frame."""
        return self.HasArgument(name) and self._arg(name).per_frame

    def IsDeprecatedArg(self, name: str) -> bool:
        """True if an argument is an old one."""
        return self.HasArgument(name) and self._arg(name).deprecated is not None

    def GetArgumentType(self, name: str) -> DALIDataType:
        """Type of an argument."""
        return _TYPES.get(self._arg(name).type.name, DALIDataType.PYTHON_OBJECT)

    def GetArgumentDox(self, name: str) -> str:
        """Documentation of an argument."""
        return self._arg(name).doc

    def HasArgumentDefaultValue(self, name: str) -> bool:
        """True if an argument has a value where none is given."""
        arg = self._arg(name)
        return not arg.required and arg.default is not None

    def GetArgumentDefaultValueString(self, name: str) -> str:
        """The value that an argument has where none is given, as text.

        Raises
        ------
        ArgumentValueError
            If it has none.
        """
        if not self.HasArgumentDefaultValue(name):
            raise ArgumentValueError(
                f'Argument "{name}" in operator "{self.Name()}" has no default value.'
            )
        default = self._arg(name).default
        if isinstance(default, float):
            return f"{default:f}"
        return str(int(default)) if isinstance(default, DALIEnum) else repr(default)

    def IsDeprecated(self) -> bool:
        """True if it is a former name of an operator."""
        return self._schema.deprecated is not None

    def DeprecatedInFavorOf(self) -> str:
        """Operator to use in its place; empty unless it is an old name."""
        return self._schema.deprecated or ""

    def IsDocHidden(self) -> bool:
        """True if documentation leaves it out."""
        return self._schema.hidden

    def IsDocPartiallyHidden(self) -> bool:
        """True if documentation names it and no more: never, as old names are left out wholly."""
        return False

    def IsInternal(self) -> bool:
        """True if it is for the library's own use."""
        return self._schema.name.startswith("_")

    def IsStateful(self) -> bool:
        """True if an iteration depends on those before: readers, sources, random operators."""
        schema = self._schema
        return schema.reader or schema.random or schema.in_order or schema.fed

    def HasRandomSeedArg(self) -> bool:
        """True if it has a `seed`."""
        return self._schema.random or self._schema.reader

    def HasRandomStateArg(self) -> bool:
        """True if it draws random numbers and takes the state of its generator."""
        return RANDOM_STATE in self._schema.args


def call_signature(
    schema: SchemaView, api: Api, include_inputs: bool = True, include_kwargs: bool = True
) -> Signature:
    """Signature of a call: of a function, or of an instance of the class, without ``self``."""
    declared = schema._schema
    found = call_signature_for(declared) if api == "ops" else signature_for(declared, api)
    inputs = (Parameter.POSITIONAL_ONLY, Parameter.VAR_POSITIONAL)
    kept = [
        each
        for each in found.parameters.values()
        if (include_inputs if each.kind in inputs else include_kwargs)
    ]
    return found.replace(parameters=kept)


def variadic_input_name() -> str:
    """Name that stands for any number of further inputs in signatures."""
    return VARIADIC
