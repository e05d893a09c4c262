"""Declaration of an operator: plain data, no behaviour.

One `OpSchema` is the single source of an operator's ``fn``, ``ops`` and dynamic interfaces, its
argument checks, docstring, stub and line in the support matrix.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, NamedTuple

from headrace.errors import ArgumentTypeError
from headrace.types import DALIDataType, as_data_type

if TYPE_CHECKING:
    from headrace.operators.support.argument_types import ArgType
    from headrace.operators.support.operator import Operator
    from headrace.operators.support.rules import Rule


class _Required:
    def __repr__(self) -> str:
        return "REQUIRED"


REQUIRED: Any = _Required()
RANDOM_STATE = "_random_state"
"""Argument of random operators: the state of their generator in each iteration."""


class Spec(NamedTuple):
    """Properties of a batch that are known before its data.

    `ndim` is ``None`` where only the data can tell (a reshape to a computed shape, a Python
    function); `layout` is empty where nothing is known about the axes.
    """

    dtype: DALIDataType
    ndim: int | None
    layout: str = ""


def as_specs(found: Spec | Iterable[Spec]) -> tuple[Spec, ...]:
    """Normalise what `infer` has returned: one spec for each output, with element types as
    members.
    """
    specs = (found,) if isinstance(found, Spec) or found is None else tuple(found)
    if not all(isinstance(s, Spec) for s in specs):
        raise ArgumentTypeError(
            f"`infer` returned {found!r}; it returns what the outputs are: a `Spec` of type, rank "
            'and layout, as `Spec(FLOAT, 2, "HW")`, or a tuple with one for each output.'
        )
    return tuple([s._replace(dtype=as_data_type(s.dtype)) for s in specs])


def data_types(names: str) -> tuple[DALIDataType, ...]:
    """The element types that are called so: ``"UINT8 FLOAT"``."""
    return tuple([DALIDataType[name] for name in names.split()])


@dataclass(frozen=True, slots=True)
class Arg:
    """One keyword argument of an operator."""

    name: str
    type: ArgType
    default: Any = None
    doc: str = ""
    per_sample: bool = False
    """May be given as a tensor (`DataNode`) with one value a sample."""
    per_frame: bool = False
    """May differ from sample to sample, and from frame to frame of a sequence."""
    choices: tuple[Any, ...] = ()
    """The only values; others are refused when the pipeline is built, or `late`."""
    late: bool = False
    """Other values than `choices` are refused with the first data, as in DALI."""
    said: str = ""
    """Said in front where a value is none of `choices`: the words of DALI, ``{}`` the value."""
    hint: bool = False
    """Tunes memory or scheduling in DALI; it never changes a result and Headrace needs no such
    hint.
    """
    deprecated: str | None = None
    """Name of the argument to use instead, or an empty string where there is none."""
    unsupported: str | None = None
    """Reason why any value but the default raises `NotImplementedError`."""
    shape_of: str | None = None
    """Shape of one sample's value, for the documentation: ``"(H, W)"``."""
    hidden: bool = False
    """Understood in pipelines, but neither documented nor listed, as in DALI."""
    of_batch: bool = False
    """Of a tensor, the first sample's value counts for all samples."""

    def __post_init__(self) -> None:
        object.__setattr__(self, "per_sample", self.per_sample or self.per_frame)

    @property
    def required(self) -> bool:
        """True if the user must give it."""
        return self.default is REQUIRED

    def deprecation(self) -> str:
        """Warning for a use of a deprecated argument, or ""."""
        name, new = self.name, self.deprecated
        if not new:
            return (
                f"The argument `{name}` is no longer used and will be removed in a future release."
            )
        return f"The argument `{name}` is a deprecated alias for `{new}`. Use `{new}` instead."


@dataclass(frozen=True, slots=True)
class Input:
    """One positional input of an operator."""

    name: str = "data"
    doc: str = ""
    layouts: tuple[str, ...] = ()
    """Allowed layouts, most usual first; empty where any will do."""
    dtypes: tuple[DALIDataType, ...] = ()
    """Allowed element types; empty where any will do."""
    device: str | None = None
    """Device that operators on the GPU want the data on: ``"cpu"`` for what they read on the host;
    ``"any"`` where they look at its type and shapes only; the GPU when not given. Operators on the
    CPU want all data on the CPU.
    """
    optional: bool = False
    frames_lead: bool = False
    """True if, where any layout will do, frames come before all axes but channels."""

    def __post_init__(self) -> None:
        if isinstance(self.layouts, str):  # its letters would be the layouts
            raise ArgumentTypeError(
                f"`layouts` of input `{self.name}` is {self.layouts!r}; it is a tuple of layouts, "
                f'as `layouts=("{self.layouts}",)`.'
            )
        types = self.dtypes if isinstance(self.dtypes, (list, tuple)) else (self.dtypes,)
        object.__setattr__(self, "dtypes", tuple([as_data_type(t) for t in types]))


class OldName(NamedTuple):
    """A former name of an operator, where more is to be said of it than the name."""

    name: str
    dynamic: bool = False
    """Dynamic mode has it, too."""


@dataclass(frozen=True, slots=True)
class OpSchema:
    """Everything that is said about an operator, once."""

    name: str
    """Full public name below ``fn``: ``"crop"``, ``"decoders.image"``."""
    cls: type[Operator]
    doc: str
    inputs: tuple[Input, ...]
    args: dict[str, Arg]
    num_outputs: int | Callable[[dict[str, Any]], int] = 1
    output_names: Callable[[dict[str, Any]], list[str]] | None = None
    """Tells the names of the outputs, of which calls then return a dict."""
    optional_adds_output: bool = False
    """Each optional input that is given adds an output."""
    output_docs: tuple[str, ...] = ()
    rules: tuple[Rule, ...] = ()
    """Arguments and optional inputs that go together, or do not."""
    frames: bool = False
    """Sequences (layouts with ``F``) are taken and each frame goes through `cpu` by itself."""
    frames_of_args: bool = False
    """Arguments given frame by frame make frames of an input that has none."""
    random: bool = False
    """Draws random numbers; gets a `seed` argument and a stream of its own."""
    reader: bool = False
    """Is a source of samples with epochs and shards."""
    decodes_video: bool = False
    """Hands videos to FFmpeg on the CPU: what is fed in the program, all others in worker processes
    unless the user says otherwise.
    """
    describes_video: bool = False
    """Can describe the frames of its first output in place of decoding them, which a GPU's decoders
    then do; see `graph.hardware_video`.
    """
    given_readers: Callable[[Mapping[str, Any]], Sequence[Mapping[str, Any]]] | None = None
    """Tells the readers among the arguments of one that reads them; see
    `operators.readers.given_readers`.
    """
    takes_any_device: bool = False
    """Inputs on the CPU are copied to the GPU for it, where it runs there."""
    variadic: bool = False
    """Takes any number of inputs like the last one."""
    max_inputs: int | None = None
    reads_metadata: bool = False
    """On the CPU, too, it takes data on the GPU: it looks at type, shape and layout only."""
    in_order: bool = False
    """Works on whole batches of one iteration after the other, in their order: it calls what may
    remember something, or talk to other processes.
    """
    data_dependent_type: bool | Callable[[dict[str, Any]], bool] = False
    """Only the data tells what comes out, with some arguments or with all: `cpu` and `gpu` return a
    `RuntimeTypedBatch` for each output, and what reads it begins when it is there.
    """
    fed: bool = False
    """Its outputs come from outside of the graph: from the feed that its node carries. It has no
    code of its own.
    """
    copies_to: str | None = None
    """The device, ``"cpu"`` or ``"gpu"``, that it copies its input to, if it does nothing else."""
    calls_user: bool = False
    """Calls a function of the user's, whose time is counted by itself."""
    is_kept: bool = False
    """Never left out of a graph, also where its outputs are not used."""
    merges: bool = False
    """Joins branches: it is given its first input for samples with a true predicate, which is the
    third, and its second one for the others.
    """
    typed_by_last: bool = False
    """Is given the type of its last input, `None` where that is not known, and not the data."""
    is_expression: bool = False
    """Computes the expression that is its argument `expression`: where one of these reads another,
    both become one.
    """
    is_constant: bool = False
    """Has one output, the same for all samples: it is made anew on a device that wants it, and not
    copied there.
    """
    side_data: bool = False
    """Texts and objects are taken, too: samples are handed on as they are."""
    positional: tuple[str, ...] = ()
    """Arguments, and ``device``, that may also be given by position, in this order; where there are
    inputs, to the operator's class only."""
    hidden: bool = False
    deprecated: str | None = None
    """Full name of the operator to use instead."""
    dynamic: bool = True
    """Dynamic mode has a function for it, or a class if it is a reader."""
    class_name: str | None = None
    """Name of its class below ``ops``, where it does not follow from `name`."""
    written: str | None = None
    """Notation used instead of a call by name: ``"[...]"``."""
    devices: tuple[str, ...] = ("cpu", "gpu")
    """Devices the operator has in DALI; those without an implementation raise by themselves."""

    def count_outputs(self, args: dict[str, Any]) -> int:
        """Number of outputs with these arguments."""
        count = self.num_outputs(args) if callable(self.num_outputs) else self.num_outputs
        side = args.get("side_data") if self.reader else None
        return count + (1 if isinstance(side, str) else len(side or ()))

    def is_typed_late(self, args: dict[str, Any]) -> bool:
        """True if only the data tells what comes out, with these arguments."""
        late = self.data_dependent_type
        return late(args) if callable(late) else late

    @property
    def is_librarys(self) -> bool:
        """True if the operator is the library's, none that a program has declared."""
        # A class made by `exec` is of no module.
        return (self.cls.__module__ or "").startswith("headrace.")

    @property
    def shown_args(self) -> dict[str, Arg]:
        """The arguments that are documented."""
        return {name: arg for name, arg in self.args.items() if not arg.hidden}

    @property
    def min_inputs(self) -> int:
        """Number of inputs that must be given."""
        return sum(not i.optional for i in self.inputs)

    @property
    def module(self) -> str:
        """Dotted sub-module of ``fn`` the operator lives in; empty for ``fn`` itself."""
        return self.name.rpartition(".")[0]

    def with_old_name(self, old: str | OldName) -> OpSchema:
        """The same declaration under a former name, whose use brings a `DeprecationWarning`."""
        name, dynamic = (old, False) if isinstance(old, str) else old
        return replace(
            self, name=name, deprecated=self.name, hidden=True, dynamic=dynamic, class_name=None
        )
