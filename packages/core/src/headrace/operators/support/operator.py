"""The base of every operator and the decorator that declares one."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Sequence
from functools import cached_property
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any, ClassVar, Protocol

import numpy as np

from headrace.errors import ArgumentTypeError, NotYetSupportedError
from headrace.operators.support.argument_types import (
    BoolArg,
    IntArg,
    IntListArg,
    RandomStateArg,
)
from headrace.operators.support.batch_context import BatchContext as BatchContext
from headrace.operators.support.contexts import ChunkContext as ChunkContext
from headrace.operators.support.contexts import SampleContext as SampleContext
from headrace.operators.support.declaration_checks import (
    check_args,
    check_inputs,
    check_name,
    check_traits,
)
from headrace.operators.support.lazy_value import LazyValue
from headrace.operators.support.registry import register
from headrace.operators.support.rules import check_declared
from headrace.operators.support.schema import (
    RANDOM_STATE,
    Arg,
    Input,
    OldName,
    OpSchema,
    Spec,
)
from headrace.operators.support.shape_memo import ShapeMemo
from headrace.tensors.rows import Rows
from headrace.tracebacks import public

if TYPE_CHECKING:
    from headrace.operators.support.planning import PlanContext, Planned


class HostBatch(Protocol):
    """A batch in host memory, for operators that work on the GPU."""

    rows: list[np.ndarray]
    """The samples."""
    scanned: Any
    """Headers of JPEG files, a `ScannedJpegs`, if they were scanned when read; else `None`."""

    def note_upload(self) -> None:
        """Take note that the batch is copied to the GPU."""

    @property
    def dense(self) -> np.ndarray | None:
        """All samples as one array, in order; `None` if they do not lie in one piece."""

    @property
    def segments(self) -> Sequence[Any] | None:
        """Few segments of page-locked memory with all samples: `cpu.packed_rows.RowSegment`."""

    def __len__(self) -> int:
        """Number of samples."""


class Operator:
    """One operator at work on inputs of known type: what is common to all granularities.

    An operator is a sub-class of `SampleOperator`, `BatchOperator` or `Reader`. The engine calls
    what is declared on these classes, and nothing else.

    An instance lives for one signature of inputs: `infer` is called exactly once, before any
    data exists, and may keep what it learned on ``self``. After that the instance is shared by
    all worker threads, so that no other method may write to it.

    Attributes
    ----------
    args
        Constant arguments by name, converted; `None` for those not given and without default
        and for those given as tensors.
    tensor_args
        `Spec` of each argument that is given as a tensor, by name.
    user_line
        Line of the program that made the node, ``"file:line in function"``; empty where there is
        none, as in dynamic mode.
    """

    schema: ClassVar[OpSchema]
    user_line = ""

    def __init__(self, args: dict[str, Any], tensor_args: dict[str, Spec] | None = None) -> None:
        self.args: Any = SimpleNamespace(**args)
        self.tensor_args: dict[str, Spec] = tensor_args or {}
        self.batch_plans: ShapeMemo[Planned] = ShapeMemo()
        """Plans of batches on the GPU, where these follow from shapes alone."""

    @classmethod
    def for_arguments(cls, args: dict[str, Any]) -> type[Operator]:
        """The class that does the work with these constants.

        This one, unless they decide at which granularity: then a `BatchOperator` may take the
        place of a `SampleOperator`, and be derived from that as well.
        """
        return cls

    compiled_takes: ClassVar[tuple[type, ...]] = ()
    """Values that the operator before it may return from its own `compiled` in place of columns."""

    @classmethod
    def has_cpu(cls) -> bool:
        """True if there is an implementation for the CPU."""
        return False

    @classmethod
    def has_gpu(cls) -> bool:
        """True if there is an implementation for the GPU."""
        return cls.gpu is not Operator.gpu

    same_on_cpu: ClassVar[bool] = True
    """True if the CPU can do what is asked of a GPU; false where users write kernels."""

    def given(self, name: str) -> bool:
        """True if the user gave argument `name`, as a constant or as a tensor."""
        return getattr(self.args, name) is not None or name in self.tensor_args

    def check_known(self, inputs: int) -> None:
        """Check what is known before there are data: constants and the number of inputs."""
        check_declared(self.schema, vars(self.args), self.tensor_args, inputs)
        self.check_constants()

    def check_constants(self) -> None:
        """Raise what can be said of the constants alone, when the pipeline is built."""

    def infer(self, *inputs: Any, **no: Any) -> Spec | tuple[Spec, ...]:
        """Type, rank and layout of the outputs, or an error if `inputs` cannot be taken."""
        found: Spec = inputs[0]
        return found

    def suspect(self, *inputs: Spec) -> str:
        """A warning, said once after `infer`, that `inputs` or arguments are hardly meant."""
        return ""

    plan: ClassVar[Callable[..., Planned | None] | None] = None
    """A method ``plan(c, *inputs)`` that works out what has to be known before pixels are touched,
    for several samples at once: shapes of the outputs, windows, matrices, or the outputs themselves
    where they follow from shapes and small values. `c` is a `PlanContext`, and each input a
    `Samples` (on the GPU a batch). Returns a `Planned`. What it raises is the error of a sample:
    where several were planned, each is planned alone, so that the error finds its own; see
    `SAMPLE_ERRORS`. `None` where
    shapes of outputs show only in the data; `cpu` then works with what the data says."""

    plans_values: bool = False
    """True if `plan` reads values of inputs, or makes those of outputs, so that it does not follow
    from shapes alone; `infer` may still change it.
    """

    unplanned: ClassVar[tuple[str, ...]] = ()
    """Arguments that `plan` does not look at: `cpu` finds them as ``c.args.<name>``, also where
    they differ by sample, and plans are remembered all the same."""

    @cached_property
    def plans_by_shape(self) -> bool:
        """True if a sample's plan follows from its shape alone, where it is the only input."""
        follows = not (self.plans_values or self.schema.random)
        return follows and self.tensor_args.keys() <= set(self.unplanned)

    needs_plan: bool = True
    """True if `cpu` uses the results of `plan`. Otherwise `plan` is only called where several
    samples can be planned at once, may return `None`, and `cpu` finds its arguments as without a
    plan.
    """

    frame_args: tuple[str, ...] = ()
    """Arguments that are handed over without conversion, since they have a value for each frame."""

    takes: ClassVar[tuple[type, ...]] = ()
    """Kinds of lazy value that `cpu` and `gpu` understand as inputs: sub-classes of `LazyValue` and
    `LazyBatch`. The engine computes all others first."""

    returns_lazy: tuple[type, ...] = ()
    """Kinds of lazy value that `cpu` and `gpu` may return as the first output, or a `LazyBatch` as
    any; of those on the CPU, the one with the output's layout counts. `infer` may still change it.
    Where the only reader `takes` them, it gets them as they are; for all others the engine computes
    them at once."""

    chunks_lazy: bool = False
    """True if a `SampleOperator` gets several samples at a time, in `cpu_chunk`, where the first
    input is lazy and the output is computed; `infer` may still change it. It is given a list with a
    lazy value for each sample, of a kind in `takes`; `cpu` works on all other inputs.
    """

    keeps_shape: ClassVar[bool] = False
    """True if outputs have the shape of the first input, so that a sequence without frames has an
    output, too.
    """

    elementwise: ClassVar[bool] = False
    """True if `gpu` maps elements one to one, wherever they lie, with arguments that are the same
    for all of a sample. An operator of frames is then given sequences as they are.
    """

    def gpu(self, c: BatchContext, *inputs: Any, **no: Any) -> Any:
        """Queue the work on one batch on the GPU; return the output batch, or a tuple of them.

        Inputs are `DeviceBatch`, or lazy values of the classes in `takes`; those declared with
        ``device="cpu"`` are `HostBatch`. Outputs are a `DeviceBatch`, which may share memory with
        an input, or a `LazyBatch`. Nothing here may wait for the device, and nothing may be done
        sample by sample that NumPy, or a loop that `headrace.kernels.plan.compiled` makes, can do
        for the whole batch.
        """
        raise NotYetSupportedError(f"`{self.schema.name}` has no GPU implementation.")


class SampleOperator(Operator):
    """An operator that works sample by sample: on the CPU, samples flow through it one by one."""

    chunked: bool = False
    """True if samples come several at a time, to `cpu_chunk`; `infer` may still change it."""

    chunks_light: bool = False
    """True if `cpu_chunk` is called for several samples that have few bytes, where no input is
    lazy; it returns `None` where they are better done one by one, by `cpu`. `infer` may
    still change it."""

    compiled: ClassVar[Callable[..., Any] | None] = None
    """A method ``compiled(c, *inputs)`` that writes the operator as instructions of one compiled
    loop, which takes samples through all steps without the interpreter where each of them can be
    written so. `c` is a `CompiledStepContext`, and each input a `SampleColumns`, or what the
    operator before it has returned in place of these, of which the next one of its kind makes more.
    Returns the same for each output, or `None` where there are no instructions. What they write is
    what `cpu` and `cpu_chunk` write, bit for bit. Samples that are out of the ordinary, bad ones
    among them, are refused by the plan of an instruction, and left to those."""

    cpu_light: ClassVar[Callable[..., Any] | None] = None
    """A method ``cpu_light(c, *inputs)`` of an operator in front of such ones, which else hands on
    lazy values: as `cpu_chunk`, it returns a `Rows` for each output of several small samples, or
    `None` where they are not small. Where it raises, samples go the ordinary way."""

    compiled_views: ClassVar[bool] = False
    """True if `compiled` takes views of any strides; others are given contiguous samples."""

    @classmethod
    def has_cpu(cls) -> bool:
        """True if there is an implementation for the CPU."""
        return (
            cls.cpu is not SampleOperator.cpu
            or cls.cpu_chunk is not SampleOperator.cpu_chunk
            or bool(cls.plan is not None and cls.plans_values)  # its outputs themselves
        )

    def cpu(self, c: SampleContext, *inputs: Any, **no: Any) -> Any:
        """Work on one sample; return its output, or a tuple of outputs.

        Inputs may be views with any strides and must not be written to. Outputs may be views of
        inputs. Memory for outputs comes from ``c.empty``, scratch from ``c.temp``.
        """
        return run_chunk_of_one(self.cpu_chunk, c, *inputs)

    def cpu_chunk(self, c: ChunkContext, *inputs: Any, **no: Any) -> Any:
        """Work on several samples in one call; return a `Rows` for each output.

        Inputs are `Rows`, or one lazy value of a kind in `takes` that stands for all samples. Such
        a value has `subset`, and may be returned in place of the only output.

        For work that takes little more than the interpreter's way to it: a compiled loop over the
        samples takes that way once. The engine calls it in place of `cpu` where `chunked` is true.
        Where it raises for several samples, it is called for each of them alone. An operator that
        always works so has no `cpu` besides.
        """
        raise NotYetSupportedError(f"`{self.schema.name}` has no CPU implementation.")


def run_chunk_of_one(function: Callable[..., Any], c: SampleContext, *inputs: Any) -> Any:
    """Run `function`, which takes chunks as `SampleOperator.cpu_chunk` does, on one sample."""
    one = c.alone()
    found = function(one, *[Rows([data]) for data in inputs])
    if isinstance(found, LazyValue):
        found = found.materialise(one)
    if isinstance(found, tuple):
        return tuple([each[0] for each in found])
    return found[0]


class BatchOperator(Operator):
    """An operator that needs all samples of a batch at once; on the CPU it ends a stage."""

    @classmethod
    def has_cpu(cls) -> bool:
        """True if there is an implementation for the CPU."""
        return cls.cpu is not BatchOperator.cpu or cls.reduce is not None

    reduce: ClassVar[Callable[..., Any] | None] = None
    """A method ``reduce(c, *inputs)``, for work that needs to know no more of the batch than a few
    numbers. It is given a `PlanContext` and the inputs, as `Rows`, and returns an array, or a tuple
    of them. Then a method ``apply(c, *inputs, *arrays)`` works on one sample, as
    `SampleOperator.cpu` does, in whatever worker: so all threads have a part. There is no `cpu`
    then."""

    chunked: bool = False
    """True if `apply` works on several samples at a time, as `SampleOperator.cpu_chunk` does."""

    reduced: ClassVar[int] = 1
    """Number of arrays that `reduce` returns."""

    def padding(self, shapes: np.ndarray, *reduced: Any) -> tuple[int, int]:
        """Elements of samples of these shapes before and after padding, by what `reduce` has
        returned; zeros where nothing is padded.
        """
        return 0, 0

    @classmethod
    def joins_sources(cls) -> bool:
        """True if samples of the outputs are made of other samples, so that `origins` is asked."""
        return cls.origins is not BatchOperator.origins

    def origins(self, c: PlanContext, known: Sequence[Sequence[str]]) -> list[str] | None:
        """Sources of each sample of the outputs; ``known[n][k]`` is that of sample `k` of input
        `n`, empty where unknown.

        `None` where each is made of its own. `c` is what `cpu` or `gpu` has been given, and has
        worked with.
        """
        return None

    def cpu(self, c: Any, *inputs: Any, **no: Any) -> Any:
        """Work on one batch; return a list of samples for each output, or an array of all.

        Each input is a list of samples. Samples of outputs may be those of inputs, in any order, or
        views of them. `c` is a `PlanContext` (``c.size``, ``c.args``, ``c.values(name)``, ...) and
        has ``c.empty(k, shape, dtype)``, memory for the output of sample `k`; ``c.temp(shape,
        dtype)``, scratch memory; ``c.whole(n)``, input `n` as one array where its samples lie in
        one piece; and ``c.located(error, k)``, an error with the place of sample `k`.
        """
        raise NotYetSupportedError(f"`{self.schema.name}` has no CPU implementation.")


_PRESERVE = Arg(
    "preserve", BoolArg, False, "Keep the operator even when nothing uses its outputs.", hint=False
)
_BYTES_PER_SAMPLE = Arg(
    "bytes_per_sample_hint",
    IntListArg,
    None,
    "Expected size of a sample in bytes, of all outputs or of each: so much memory is set aside "
    "for batches when the pipeline is built.",
)
_SEED = Arg(
    "seed",
    IntArg,
    None,
    "Seed of the operator's random stream; drawn from the pipeline's seed when not given.",
)
_RANDOM_STATE = Arg(
    RANDOM_STATE,
    RandomStateArg,
    None,
    "State of the generator: the seven words of 32 bits that a call of dynamic mode takes of one. "
    "All iterations with the same words draw the same numbers, whatever `seed` is.",
    per_sample=True,
    hidden=True,
    of_batch=True,
)


@public
def operator(
    name: str,
    *,
    inputs: Input | Iterable[Input] = (),
    args: Iterable[Arg] = (),
    infer: Callable[..., Spec | tuple[Spec, ...]] | None = None,
    old_names: Iterable[str | OldName] = (),
    **traits: Any,
) -> Callable[[Any], type[Operator]]:
    """Declare an operator: what is decorated becomes ``fn.<name>`` and all its other interfaces.

    It is a sub-class of `SampleOperator` or `BatchOperator`, or a function
    ``f(xp, *inputs, **arguments)`` of the array module, the inputs of one sample and the arguments
    it names; the function returns the output.

    Parameters
    ----------
    name
        Public name below ``fn``, dotted for sub-modules.
    inputs
        The positional inputs.
    args
        The keyword arguments. `preserve`, `bytes_per_sample_hint` and, for random operators,
        `seed` are added to every operator.
    infer
        For a function: takes a `Spec` for each input and returns those of the outputs. Without it,
        the output has type, rank and layout of the first input.
    old_names
        Former names, below ``fn`` as `name` is. Each is declared with what is declared here, hidden
        and deprecated; dynamic mode has those given as ``OldName(name, dynamic=True)`` only.
    **traits
        Any other field of `OpSchema`.
    """
    check_name(name)
    check_traits(name, traits)
    input_specs = check_inputs(name, inputs)
    args = check_args(name, args)

    @public
    def declare(declared: Any) -> type[Operator]:
        cls: type[Operator] = declared
        if not isinstance(declared, type):
            from headrace.operators.support.function_operator import (
                check_parameters,
                operator_class,
            )

            cls = operator_class(SampleOperator, declared, infer)
            check_parameters(declared, name, input_specs, [a.name for a in args], traits)
        elif not issubclass(declared, Operator):
            raise ArgumentTypeError(
                f"The class {declared.__name__} of operator `{name}` is derived from "
                "`SampleOperator`, `BatchOperator` or `Reader`."
            )
        every = [*args, _PRESERVE, _BYTES_PER_SAMPLE]
        if traits.get("random") and not any(a.name == "seed" for a in every):
            every.append(_SEED)
        if traits.get("random") and not traits.get("reader") and not hasattr(cls, "compose"):
            every.append(_RANDOM_STATE)
        table: dict[str, Arg] = {}
        for arg in sorted(every, key=lambda a: a.name):
            if arg.name in table:
                raise ValueError(f"operator `{name}` declares argument `{arg.name}` twice")
            table[arg.name] = arg
        cls.schema = OpSchema(
            name=name,
            cls=cls,
            doc=inspect.cleandoc(cls.__doc__ or ""),
            inputs=input_specs,
            args=table,
            **traits,
        )
        register(cls.schema)
        for old in old_names:
            register(cls.schema.with_old_name(old))
        return cls

    return declare
