"""Planning of operators: the samples as far as they are known, and results of planning.

`Operator.plan` sees shapes, and small values, of several samples at once, as arrays with one row a
sample; it sees no pixels and no device. The engine plans a chunk of samples on the CPU before any
of them is touched, a whole batch on the GPU, and a single sample in dynamic mode, with the same
method. So the geometry of an operator is written once.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import DTypeLike

from headrace.errors import ArgumentValueError, HeadraceError, ShapeError, located
from headrace.kernels.cpu.philox_state import drawn_with
from headrace.operators.support.schema import RANDOM_STATE
from headrace.tensors.gpu.batch import as_contiguous, shape_row, shape_rows
from headrace.tensors.gpu.traced import UntrackedError, raw_of
from headrace.tensors.gpu.tracked import Tracked
from headrace.tensors.rows import Rows

if TYPE_CHECKING:
    from headrace.graph.nodes import OpNode

SMALL_ELEMENTS = 64
"""Samples with no more elements count as small values: they may be computed by `plan`."""

SAMPLE_ERRORS = (HeadraceError, ValueError, ArithmeticError, LookupError, RuntimeError, MemoryError)
"""Errors that `plan` may raise because of a sample. Where several samples were planned, each is
planned alone then. Any other class is a fault of the operator or of the engine: planning each
sample alone could hide it, so it fails the iteration.
"""


class NotPlannedError(HeadraceError):
    """An operator cannot be planned before its data is there, or has no values for its outputs."""


class Planned:
    """Results of `plan` for some samples.

    Parameters
    ----------
    shapes
        Shapes of each output, int64 ``(samples, ndim)``. One array stands for the only output.
    table
        What `cpu` and `gpu` need to know of each sample: arrays or lists with one row a sample,
        or a structured array. `cpu` finds its row as ``c.row``: a tuple with one entry for each of
        them, arrays as Python numbers and lists, but float32 ones of several axes, which kernels
        take, as arrays.
    values
        The outputs themselves, ``(samples, ...)`` each, where they follow from what is known ahead
        of the data; `cpu` is not called then.
    """

    __slots__ = ("device", "shapes", "table", "values")

    def __init__(
        self,
        shapes: np.ndarray | tuple[np.ndarray, ...] = (),
        table: tuple[Any, ...] | np.ndarray = (),
        values: np.ndarray | tuple[np.ndarray, ...] | None = None,
    ) -> None:
        self.shapes = (shapes,) if isinstance(shapes, np.ndarray) else shapes
        self.table = table
        self.values = (values,) if isinstance(values, np.ndarray) else values
        self.device: Any = None
        """Device data that `gpu` makes of the plan and keeps for later batches with the same
        plan.
        """

    def rows(self, count: int) -> list[Any]:
        """The table sample by sample."""
        table = self.table
        if isinstance(table, np.ndarray):
            rows: list[Any] = table.tolist()
            return rows
        if not table:
            return [()] * count
        if count == 1:
            return [tuple([c[0].tolist() if _is_of_numbers(c) else c[0] for c in table])]
        columns = [c.tolist() if _is_of_numbers(c) else c for c in table]
        return list(zip(*columns, strict=True))

    def repeated(self, count: int) -> Planned:
        """The plan of `count` samples that are all like the only one of this."""
        shapes = tuple([np.repeat(each, count, axis=0) for each in self.shapes])
        table = self.table
        if isinstance(table, np.ndarray):
            return Planned(shapes, np.repeat(table, count, axis=0))
        columns = [
            np.repeat(c, count, axis=0) if isinstance(c, np.ndarray) else list(c) * count
            for c in table
        ]
        return Planned(shapes, tuple(columns))


def _is_of_numbers(column: Any) -> bool:
    """True if `cpu` gets the rows of a column as Python's numbers."""
    return isinstance(column, np.ndarray) and (column.ndim == 1 or column.dtype != np.float32)


class Samples:
    """Some samples of an input, as far as they are known when `plan` is called.

    Parameters
    ----------
    rows
        The samples, where they are there.
    shapes
        Their shapes, where these are known without them: int64 ``(samples, ndim)``, or tuples.
    values
        All of them as one array, ``(samples, ...)``, where that is at hand, of small samples.
    whole
        The same of others.
    """

    __slots__ = ("_origin", "_rows", "_shapes", "_values", "_whole")

    def __init__(
        self,
        rows: Sequence[Any] | None = None,
        shapes: np.ndarray | list[tuple[int, ...]] | None = None,
        values: np.ndarray | None = None,
        whole: np.ndarray | None = None,
    ) -> None:
        self._rows = rows
        self._shapes = shapes
        self._values = values
        self._whole = whole
        self._origin: tuple[Samples, Sequence[int] | np.ndarray] | None = None
        """Samples that these were `taken` from, and their indices there."""

    def __len__(self) -> int:
        for known in (self.dense, self._rows, self._shapes):
            if known is not None:
                return len(known)
        raise AssertionError("nothing is known of the samples")

    @property
    def are_there(self) -> bool:
        """True if the samples themselves are known, and not only their shapes."""
        known = self._rows is not None or self._origin is not None
        return known or self.dense is not None

    @property
    def has_arrays(self) -> bool:
        """True if the samples, or their shapes, are at hand as one array."""
        return isinstance(self._shapes, np.ndarray) or self.dense is not None

    @property
    def rows(self) -> Sequence[Any]:
        """The samples.

        Raises
        ------
        NotPlannedError
            If they are not there yet.
        """
        if self._rows is None and self._origin is not None:
            origin, places = self._origin
            rows = origin.rows
            self._rows = [rows[k] for k in places]
        elif self._rows is None:
            dense = self.dense
            if dense is None:
                raise NotPlannedError("The plan reads samples that are not there yet.")
            self._rows = [dense[k, ...] for k in range(len(dense))]
        return self._rows

    @property
    def row_list(self) -> Sequence[Any]:
        """The same as a list, which is quicker to take single ones from."""
        rows = self.rows
        return rows.rows if isinstance(rows, Rows) else rows

    @property
    def dense(self) -> np.ndarray | None:
        """All samples as one array, ``(samples, ...)``; `None` unless that is at hand."""
        return self._whole if self._values is None else self._values

    def taken(self, places: Sequence[int] | np.ndarray) -> Samples:
        """The samples at these places."""
        if self._values is not None:
            return Samples(values=self._values[places])
        if self.has_arrays:
            made = Samples(shapes=self.shapes[places])
        elif self.are_there:
            rows = self.rows
            return Samples([rows[k] for k in places])
        else:
            shapes = self.shape_tuples
            return Samples(shapes=[shapes[k] for k in places])
        if self.are_there:
            made._origin = self, places
        return made

    @property
    def shape_tuples(self) -> list[tuple[int, ...]]:
        """Their shapes as tuples."""
        shapes = self._shapes
        if shapes is None:
            dense = self.dense
            if dense is not None:
                return [dense.shape[1:]] * len(dense)
            shapes = self._shapes = [row.shape for row in self.row_list]
        elif isinstance(shapes, np.ndarray):
            shapes = list(map(tuple, shapes.tolist()))
        return shapes

    @property
    def common_shape(self) -> tuple[int, ...] | None:
        """The shape of all of them, where that shows without a look at each."""
        dense = self.dense
        if dense is not None:
            return dense.shape[1:]
        shapes = self._shapes
        if not isinstance(shapes, np.ndarray) or not len(shapes):
            return None
        if shapes.tobytes() != shapes[:1].tobytes() * len(shapes):
            return None
        return tuple(shapes[0].tolist())

    @property
    def shapes(self) -> np.ndarray:
        """Their shapes, int64 ``(samples, ndim)``, not to be written to.

        Raises
        ------
        ShapeError
            If they have different numbers of dimensions.
        """
        shapes, rows = self._shapes, self._rows
        if isinstance(shapes, np.ndarray):
            return shapes
        dense = self.dense
        if shapes is None and dense is not None:
            found = np.full((len(dense), dense.ndim - 1), dense.shape[1:], np.int64)
        elif shapes is None and isinstance(rows, Rows):
            found = rows.shapes
        elif shapes is None and rows is not None and len(rows) == 1:
            found = shape_row(rows[0].shape)
        else:
            found = shapes_of(self.shape_tuples)
        self._shapes = found
        return found

    @property
    def ndim(self) -> int:
        """Number of dimensions of a sample."""
        return int(self.shapes.shape[1])

    @property
    def values(self) -> np.ndarray | None:
        """All samples as one array, ``(samples, ...)``; `None` where they are not there, are not
        small, or differ in shape.
        """
        shapes = self._shapes
        if isinstance(shapes, np.ndarray) and (shapes[:1].prod(axis=1) > SMALL_ELEMENTS).any():
            return self._values
        if self._values is None and (self._rows or self._origin):
            rows = self.rows
            shape = rows[0].shape
            if math.prod(shape) <= SMALL_ELEMENTS and all(row.shape == shape for row in rows):
                self._values = np.array(rows)
        return self._values


def shapes_of(shapes: Sequence[tuple[int, ...]]) -> np.ndarray:
    """Shapes as int64 ``(samples, ndim)``."""
    if len(shapes) == 1:
        return shape_row(shapes[0])
    ndim = len(shapes[0]) if shapes else 0
    if any(len(shape) != ndim for shape in shapes):
        raise ShapeError(
            "The samples have different numbers of dimensions: "
            f"{sorted({len(shape) for shape in shapes})}; all samples of a batch have the same."
        )
    return np.array(shapes, np.int64).reshape(len(shapes), ndim)


def repeated(rows: np.ndarray, count: int) -> np.ndarray:
    """`rows`, one for each of `count` samples; one that stands for all is repeated, not copied."""
    return rows if len(rows) == count else np.broadcast_to(rows, (count, *rows.shape[1:]))


TensorArguments = Mapping[str, tuple[Any, Callable[[np.ndarray], Any] | None]]
"""For each argument given as a tensor: samples, with `rows` and `dense`, and what converts one."""


class PlanContext:
    """Input of `plan` besides the operator's inputs: arguments of several samples, and their
    positions.

    Parameters
    ----------
    args
        Constant arguments by name, converted, not to be changed; `None` for those given as tensors.
    tensors
        Each argument that is given as a tensor: samples, an object with `rows` and `dense`, and
        what converts one of them, if it is to be converted.
    indices
        Positions of the samples in their batch.
    seed
        Seed of the operator's random stream.
    iteration
        Number of the iteration since the pipeline was built.
    sources
        Where each sample came from, if known.

    Attributes
    ----------
    size
        Number of samples.
    """

    __slots__ = ("_seed", "_tensors", "args", "indices", "iteration", "node", "size", "sources")

    node: OpNode
    """The operator in its graph; set in the contexts of whole batches."""

    def __init__(
        self,
        args: Any,
        tensors: TensorArguments,
        indices: Sequence[int],
        seed: Any = 0,
        iteration: int = 0,
        sources: Sequence[str] | None = None,
    ) -> None:
        self.args = args
        self.size = len(indices)
        self._tensors = tensors
        self.indices = indices
        self._seed = seed
        self.iteration = iteration
        self.sources = sources

    @property
    def seed(self) -> Any:
        if RANDOM_STATE in self._tensors:
            return drawn_with(self.values(RANDOM_STATE)[0])
        return drawn_with(vars(self.args).get(RANDOM_STATE), self._seed)

    def values(self, name: str) -> list[Any]:
        """Argument `name` of each sample, converted."""
        found = self._tensors.get(name)
        if found is None:
            return [getattr(self.args, name)] * self.size
        batch, convert = found
        if convert is None:
            return list(batch.rows)
        try:
            return [convert(row) for row in batch.rows]
        except (TypeError, ValueError) as error:
            kind = type(error) if isinstance(error, HeadraceError) else ArgumentValueError
            raise kind(f"Argument `{name}`: {error}") from error

    def array(self, name: str, dtype: DTypeLike) -> np.ndarray | None:
        """Argument `name` of all samples as one array ``(samples, ...)``, without conversion.

        A constant is repeated, without a copy. `None` where the argument is not given.

        Raises
        ------
        ShapeError
            If samples have values of different shapes.
        """
        found = self._tensors.get(name)
        if found is None:
            constant = getattr(self.args, name)
            if constant is None:
                return None
            value = np.array(constant, dtype, order="C")
            shape, strides = (self.size, *value.shape), (0, *value.strides)
            same = np.ndarray(shape, value.dtype, value, 0, strides)  # half of np.broadcast_to
            same.setflags(write=False)
            return same
        whole: np.ndarray | None = getattr(found[0], "dense", None)
        if whole is not None:
            return whole.astype(dtype, copy=False)
        return _stacked(name, found[0].rows, dtype)

    def raw(self, name: str) -> Sequence[np.ndarray]:
        """Argument `name`, given as a tensor, of each sample, without conversion."""
        return self._tensors[name][0].rows  # type: ignore[no-any-return]

    def source(self, index: int) -> str:
        """File or key that sample number `index` of those here was read from."""
        return "" if self.sources is None else self.sources[index]

    def located(
        self, error: BaseException, index: int | None = None, raised: str = ""
    ) -> BaseException:
        """`error` with the place of the operator and of sample `index`, to be raised; for operators
        on whole batches.

        `raised` is the line of a function of the user's that it came from.
        """
        if index is None:
            return located(error, self.node.where(raised=raised))
        return located(error, self.node.where(self.indices[index], self.source(index), raised))


class NumberTable:
    """Arguments of one number each, as the columns of one table."""

    __slots__ = ("_constants", "_tensors")

    def __init__(self, op: Any, defaults: Mapping[str, float]) -> None:
        given = vars(op.args)
        numbers = [default if given.get(n) is None else given[n] for n, default in defaults.items()]
        self._constants = np.array([numbers], np.float32)
        self._tensors = [(k, name) for k, name in enumerate(defaults) if name in op.tensor_args]

    def rows(self, c: PlanContext, count: int) -> np.ndarray:
        """The numbers of `count` samples, C-contiguous float32 ``(count, columns)``."""
        table = self._constants.copy() if count == 1 else np.repeat(self._constants, count, axis=0)
        for column, name in self._tensors:
            try:
                if count == 1 and name in c._tensors:  # the call of dynamic mode on a single sample
                    table[0, column] = c._tensors[name][0].rows[0].item()
                else:
                    table[:, column] = c.array(name, np.float32).reshape(count)  # type: ignore[union-attr]
            except ValueError:
                c.values(name)  # says what is wrong
                raise
        return table


def plan_batch(op: Any, c: Any, *inputs: Any) -> Planned:
    """Call `op.plan` for a batch; an error names the sample it belongs to.

    Where nothing but shapes has a say in it, plans are remembered, and samples that are all alike
    are planned as one: shapes and table then have a single row. Samples that cannot be planned
    together, as where arguments differ in length from sample to sample, are planned one by one.

    Parameters
    ----------
    op
        The operator, after its `infer`.
    c
        A `BatchContext`.
    inputs
        Batches, which know the shapes of their samples; on the host, samples too.
    """
    queue = getattr(c, "queue", None)
    noted = 0 if queue is None else queue.arguments_noted
    is_tracking = queue is not None and queue.is_tracking
    if is_tracking and any(isinstance(getattr(b, "shapes", None), Tracked) for b in inputs):
        return _plan_tracked(op, c, inputs, noted)
    if op.plans_by_shape and len(inputs) == 1:
        batch = inputs[0]

        def made() -> Planned:
            return _plan_batch(op, c, Samples(shapes=shape_rows(batch)))

        planned: Planned = op.batch_plans.of(batch, made)
    else:
        planned = _plan_batch(op, c, *inputs)
    if queue is not None:
        queue.note_plan(op, planned, inputs, noted)
    return planned


def _plan_tracked(op: Any, c: Any, inputs: tuple[Any, ...], noted: int) -> Planned:
    """Plan for a recording that is to be planned anew for other shapes: its arrays are tracked."""
    if any(hasattr(batch, "rows") for batch in inputs):
        raise UntrackedError(f"`{type(op).__name__}` plans with samples on the host")
    seen = tuple([Samples(shapes=raw_of(as_contiguous(batch.shapes))) for batch in inputs])
    planned = _plan_batch(op, c, *seen)
    constants = constants_of(planned)
    if planned.values is not None or constants is None:
        raise UntrackedError(f"the plan of `{type(op).__name__}` is not of arrays and numbers")
    c.queue.note_tracked_plan(op, seen, planned.shapes, parts_of(planned), constants, noted)
    shapes: list[Any] = [Tracked(each) for each in planned.shapes]
    if isinstance(planned.table, np.ndarray):
        table: Any = Tracked(planned.table)
    else:
        table = tuple([Tracked(p) if isinstance(p, np.ndarray) else p for p in planned.table])
    return Planned(tuple(shapes), table)


def constants_of(planned: Planned) -> tuple[Any, ...] | None:
    """All of a plan's table but arrays, to be compared; `None` where it is not of numbers alone."""
    table = planned.table
    parts = () if isinstance(table, np.ndarray) else table
    found = tuple([tuple(p) for p in parts if not isinstance(p, np.ndarray)])
    try:
        hash(found)  # no arrays within
    except TypeError:
        return None
    return found


def parts_of(planned: Planned) -> tuple[np.ndarray, ...]:
    """The arrays of a plan's table."""
    table = planned.table
    parts = (table,) if isinstance(table, np.ndarray) else table
    return tuple([part for part in parts if isinstance(part, np.ndarray)])


def _plan_batch(op: Any, c: Any, *batches: Any) -> Planned:
    inputs = [_as_samples(batch) for batch in batches]
    try:
        planned: Planned = op.plan(c, *inputs)
        return planned
    except SAMPLE_ERRORS:
        if not c.size:
            raise
    alone = SampleContexts(op, c)
    parts = []
    for k in range(min(c.size, len(inputs[0]) if inputs else c.size)):
        try:
            parts.append(op.plan(alone.context(k), *(sample_of(batch, k) for batch in inputs)))
        except Exception as error:
            raise c.located(error, k) from error
    return _joined(parts)


class SampleContexts:
    """Each sample of a batch by itself, for what is planned one by one."""

    def __init__(self, op: Any, c: Any) -> None:
        self._c = c
        self._tensors = {name: c.values(name) for name in op.tensor_args}

    def context(self, index: int) -> PlanContext:
        """The `PlanContext` of a sample."""
        c = self._c
        args = c.args
        if self._tensors:
            own = {name: values[index] for name, values in self._tensors.items()}
            args = SimpleNamespace(**{**vars(args), **own})
        place = c.indices[index : index + 1]
        return PlanContext(args, {}, place, c.seed, c.iteration, [c.source(index)])


def _as_samples(batch: Any) -> Any:
    """A batch as `plan` takes it: on a GPU it is as it is, with shapes alone."""
    rows = None if isinstance(batch, Samples) else getattr(batch, "rows", None)
    return batch if rows is None else Samples(rows, whole=batch.dense)


def sample_of(batch: Any, index: int) -> Samples:
    """One sample of a batch, alone."""
    batch = _as_samples(batch)
    if isinstance(batch, Samples) and batch.are_there:
        return Samples(batch.rows[index : index + 1])
    shapes: np.ndarray = batch.shapes
    return Samples(shapes=shapes[index : index + 1])


def _joined(parts: Sequence[Planned]) -> Planned:
    """Plans of single samples as one of all."""

    def column(each: Sequence[Any]) -> Any:
        return np.concatenate(each) if isinstance(each[0], np.ndarray) else [e[0] for e in each]

    first = parts[0]
    for k in range(len(first.shapes)):
        counts = sorted({p.shapes[k].shape[1] for p in parts})
        if len(counts) > 1:
            raise ShapeError(
                "The samples of a batch come out with different numbers of axes "
                f"({', '.join(map(str, counts))}); all must have as many."
            )
    shapes = tuple(column(each) for each in zip(*(p.shapes for p in parts), strict=True))
    table: Any = ()
    if isinstance(first.table, np.ndarray):
        table = np.concatenate([p.table for p in parts])
    elif first.table:
        table = tuple(column(each) for each in zip(*(p.table for p in parts), strict=True))
    values = None
    if first.values is not None:
        values = tuple(column(e) for e in zip(*(p.values or () for p in parts), strict=True))
    return Planned(shapes, table, values)


def _stacked(name: str, rows: Sequence[np.ndarray], dtype: DTypeLike) -> np.ndarray:
    """The values of argument `name`, one a sample, as one array."""
    if not rows:
        return np.empty(0, dtype)
    first = rows[0]
    if len(rows) == 1:
        return np.asarray(first, dtype)[np.newaxis]
    if first is rows[-1] and all(row is first for row in rows):
        return np.broadcast_to(np.asarray(first, dtype), (len(rows), *first.shape))
    if any(row.shape != first.shape for row in rows):
        raise ShapeError(
            f"Argument `{name}` has values of different shapes: "
            f"{sorted({row.shape for row in rows})}. Give all samples values of one shape."
        )
    return np.array(rows, dtype)
