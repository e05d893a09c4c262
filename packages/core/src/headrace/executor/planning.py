"""Works out several samples at once, ahead of their pixels: see `Operator.plan`."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, DataTypeError, ShapeError
from headrace.operators.support.planning import (
    NotPlannedError,
    PlanContext,
    Planned,
    Samples,
    TensorArguments,
)
from headrace.operators.support.schema import Spec
from headrace.types import storage_dtype

_MOST_REMEMBERED, _MANY_REMEMBERED, _MOST_ALIKE = 4096, 512, 64


class SamplePlans:
    """The plan of one operator for some samples."""

    __slots__ = ("_numbers", "_planned", "_rows", "_shapes", "_table_dtype", "dtypes", "size")

    def __init__(self, size: int, planned: Planned | None, dtypes: Sequence[np.dtype]) -> None:
        self.size = size
        self._planned = planned
        self.dtypes = dtypes
        self._rows: list[Any] | None = None
        self._shapes: Sequence[Sequence[tuple[int, ...]]] | None = None
        self._numbers: dict[int, int] | None = None
        """Index of the plan by position in the chunk, if some samples have none."""
        self._table_dtype: np.dtype | None = None
        """Of a table that is one array, where only its rows are given."""

    @classmethod
    def of_rows(
        cls,
        rows: list[Any],
        shapes: Sequence[Sequence[tuple[int, ...]]],
        dtypes: Sequence[np.dtype],
        table_dtype: np.dtype | None,
    ) -> SamplePlans:
        """Plans given sample by sample; for a single sample, no columns are made of them."""
        made = cls(len(rows), None, dtypes)
        made._rows, made._shapes, made._table_dtype = rows, shapes, table_dtype
        return made

    @property
    def planned(self) -> Planned:
        """Results of the operator's `plan`, as columns."""
        if self._planned is None:
            rows = self.rows
            table: Any = rows
            if self._table_dtype is not None:
                table = np.array(rows, self._table_dtype)
            elif type(rows[0]) is tuple:
                table = tuple(zip(*rows, strict=True))
            self._planned = Planned(self.shape_arrays, table)
        return self._planned

    @property
    def shape_arrays(self) -> tuple[np.ndarray, ...]:
        """Shapes of each output, int64 ``(samples, ndim)``."""
        if self._planned is not None:
            return self._planned.shapes
        return tuple([np.array(each, np.int64).reshape(self.size, -1) for each in self.shapes])

    @property
    def values(self) -> tuple[np.ndarray, ...] | None:
        """The outputs themselves, ``(samples, ...)`` each; `None` where `cpu` makes them."""
        return None if self._planned is None else self._planned.values

    @property
    def rows(self) -> list[Any]:
        """Values that `cpu` reads as ``c.row``, one for each sample."""
        if self._rows is None:
            self._rows = self.planned.rows(self.size)
        return self._rows

    @property
    def shapes(self) -> Sequence[Sequence[tuple[int, ...]]]:
        """Shapes of each output: a list with a tuple for each sample."""
        if self._shapes is None:
            shapes = self.planned.shapes
            if self.size == 1:
                self._shapes = [(tuple(each[0].tolist()),) for each in shapes]
            else:
                self._shapes = [list(map(tuple, each.tolist())) for each in shapes]
        return self._shapes

    def table_of(self, places: Sequence[int]) -> tuple[Any, ...]:
        """Columns of the table, for the samples at these places."""
        if self._planned is None and len(places) == 1:
            return tuple([[value] for value in self.rows[places[0]]])
        table = self.planned.table
        if isinstance(places, range):
            return tuple([column[places.start : places.stop] for column in table])
        return tuple(
            [
                c[list(places)] if isinstance(c, np.ndarray) else [c[k] for k in places]
                for c in table
            ]
        )

    def distinct_table(self) -> Sequence[np.ndarray]:
        """Columns of the table, with one row where all samples are known to have the same."""
        rows, table = self._rows, None
        if self._planned is None and rows is not None and len(set(map(id, rows))) == 1:
            dtype = self._table_dtype
            table = self.table_of((0,)) if dtype is None else np.array(rows[:1], dtype)
        if table is None:
            table = self.planned.table
        return [np.asarray(each) for each in ((table,) if isinstance(table, np.ndarray) else table)]

    def records_of(self, places: Sequence[int]) -> np.ndarray:
        """Rows of a table that is one array, for the samples at these places."""
        table = self.planned.table
        assert isinstance(table, np.ndarray)
        if isinstance(places, range):
            return table[places.start : places.stop]
        return table[list(places)]

    def shapes_of(self, places: Sequence[int]) -> np.ndarray:
        """Shapes of the first output, int64 ``(samples, ndim)``, of some samples."""
        if self._planned is None and len(places) == 1:
            return np.array([self.shapes[0][places[0]]], np.int64)
        found = self.planned.shapes[0]
        if isinstance(places, range):
            return found[places.start : places.stop]
        return found[list(places)]

    def of(self, positions: Sequence[int]) -> SamplePlans:
        """The same, as those of the samples at these positions of the chunk, not of all."""
        made = SamplePlans(self.size, self._planned, self.dtypes)
        made._rows, made._shapes = self._rows, self._shapes
        made._table_dtype = self._table_dtype
        made._numbers = {position: k for k, position in enumerate(positions)}
        return made

    def places(self, positions: Sequence[int]) -> Sequence[int]:
        """Return the indices of the plans for the samples at these positions."""
        numbers = self._numbers
        return positions if numbers is None else [numbers[position] for position in positions]


class Planner:
    """Plans samples for one operator at work.

    Where nothing but the shape of a sample has a say in its plan, plans are remembered by shape:
    images of all sizes soon have no shape that is new.
    """

    __slots__ = (
        "_alike",
        "_alone",
        "_args",
        "_dtypes",
        "_plan",
        "_remembered",
        "_specs",
        "_table_dtype",
        "is_needed",
    )

    def __init__(self, op: Any, args: Any, specs: Sequence[Spec], *, constant: bool) -> None:
        self._plan: Callable[..., Planned | None] = op.plan
        self.is_needed: bool = op.needs_plan
        self._args = args
        self._specs = tuple(specs)
        self._dtypes = [storage_dtype(spec.dtype) for spec in specs]
        self._remembered: dict[tuple[int, ...], tuple[Any, tuple[tuple[int, ...], ...]]] | None
        self._remembered = None
        self._table_dtype: np.dtype | None = None
        """Of tables of plans that are remembered, where these are one array."""
        self._alone: dict[tuple[int, ...], SamplePlans] = {}
        """Plans of single samples by shape."""
        self._alike: dict[tuple[tuple[int, ...], int], SamplePlans] = {}
        """Plans of samples of one shape, by that and their number."""
        if constant and not op.plans_values and not op.schema.random:
            self._remembered = {}

    @property
    def remembers(self) -> bool:
        """True if plans depend on shapes alone."""
        return self._remembered is not None

    def of_shape(self, shape: tuple[int, ...]) -> SamplePlans:
        """The plan of one sample of the only input, where plans are remembered."""
        found = self._alone.get(shape)
        if found is None:
            if len(self._alone) >= _MOST_REMEMBERED:
                self._alone.clear()
            samples = Samples(shapes=[shape])
            found = self._alone[shape] = self._made((samples,), self._args, {}, (0,), 0, 0, None)
        return found

    def plan(
        self,
        inputs: Sequence[Samples],
        tensors: TensorArguments,
        indices: Sequence[int],
        *,
        seed: Any = 0,
        iteration: int = 0,
        sources: Sequence[str] | None = None,
        args: Any = None,
    ) -> SamplePlans:
        """The plans of the samples at these positions of their batch."""
        if self._remembered is not None and len(inputs) == 1:
            return self._by_shape(inputs[0], indices)
        return self._made(inputs, args or self._args, tensors, indices, seed, iteration, sources)

    def of_sample(
        self, inputs: Sequence[Samples], tensors: TensorArguments, seed: Any
    ) -> SamplePlans:
        """The plan of one sample of each input, where plans are not remembered."""
        return self._made(inputs, self._args, tensors, (0,), seed, 0, None)

    def values(
        self,
        inputs: Sequence[Samples],
        tensors: TensorArguments,
        indices: Sequence[int],
        seed: Any,
        iteration: int,
    ) -> tuple[np.ndarray, ...]:
        """The samples at these positions of their batch, of an operator whose plan makes them."""
        planned = self._plan(PlanContext(self._args, tensors, indices, seed, iteration), *inputs)
        if planned is None or planned.values is None:
            raise NotPlannedError("`plan` gives values for one sample, but not for all.")
        self._check_values(planned.values, len(indices))
        return planned.values

    def _by_shape(self, samples: Samples, indices: Sequence[int]) -> SamplePlans:
        remembered = self._remembered
        assert remembered is not None
        shape = samples.common_shape
        if shape is not None:
            return self._of_one_shape(shape, len(indices))
        shapes = samples.shape_tuples
        size = len(shapes)
        common = remembered.get(shapes[0]) if size else None
        if common is not None and shapes.count(shapes[0]) == size:
            row, made_shapes = common
            repeated = [[shape] * size for shape in made_shapes]
            return SamplePlans.of_rows([row] * size, repeated, self._dtypes, self._table_dtype)
        found = [remembered.get(shape) for shape in shapes]
        if None in found:
            if 2 * found.count(None) > len(found) and len(remembered) >= _MANY_REMEMBERED:
                # Shapes do not come again, as those of random crops: to keep them costs more.
                samples = Samples(shapes=samples.shapes)
                return self._made((samples,), self._args, {}, indices, 0, 0, None)
            new = list(dict.fromkeys(s for s, f in zip(shapes, found, strict=True) if f is None))
            made = self._made(
                (Samples(shapes=new),), self._args, {}, indices[: len(new)], 0, 0, None
            )
            table = made.planned.table
            self._table_dtype = table.dtype if isinstance(table, np.ndarray) else None
            outputs = zip(*made.shapes, strict=True)
            known = dict(zip(new, zip(made.rows, outputs, strict=True), strict=True))
            if len(remembered) + len(known) > _MOST_REMEMBERED:
                remembered.clear()
            remembered.update(known)
            found = [known[s] if f is None else f for s, f in zip(shapes, found, strict=True)]
        rows = [f[0] for f in found]  # type: ignore[index]
        outputs_of = zip(*[f[1] for f in found], strict=True)  # type: ignore[index]
        return SamplePlans.of_rows(rows, tuple(outputs_of), self._dtypes, self._table_dtype)

    def _of_one_shape(self, shape: tuple[int, ...], count: int) -> SamplePlans:
        """The plans of so many samples of one shape."""
        if count == 1:
            return self.of_shape(shape)
        found = self._alike.get((shape, count))
        if found is None:
            if len(self._alike) >= _MOST_ALIKE:
                self._alike.clear()
            planned = self.of_shape(shape).planned.repeated(count)
            found = self._alike[shape, count] = SamplePlans(count, planned, self._dtypes)
        return found

    def _made(
        self,
        inputs: Sequence[Samples],
        args: Any,
        tensors: TensorArguments,
        indices: Sequence[int],
        seed: Any,
        iteration: int,
        sources: Sequence[str] | None,
    ) -> SamplePlans:
        size = len(indices)
        context = PlanContext(args, tensors, indices, seed, iteration, sources)
        planned = self._plan(context, *inputs)
        if planned is None:
            raise NotPlannedError(
                "`plan` returned nothing, and `cpu` needs it; an operator whose `cpu` works "
                "without a plan says `needs_plan = False`."
            )
        if not isinstance(planned, Planned):
            raise ArgumentTypeError(
                f"`plan` returned {planned!r} of type {type(planned).__name__}; it returns "
                "`Planned(shapes, table)`."
            )
        if planned.values is not None:
            self._check_values(planned.values, size)
        else:
            self._check_shapes(planned.shapes, size)
        return SamplePlans(size, planned, self._dtypes)

    def _check_shapes(self, shapes: tuple[np.ndarray, ...], size: int) -> None:
        if len(shapes) == len(self._specs) == 1 and shapes[0].shape == (size, self._specs[0].ndim):
            return
        if len(shapes) != len(self._specs):
            raise ShapeError(
                f"The plan has shapes of {len(shapes)} outputs where the declaration says "
                f"{len(self._specs)}."
            )
        for k, (each, spec) in enumerate(zip(shapes, self._specs, strict=True)):
            if len(each) != size or (spec.ndim is not None and each.shape[1] != spec.ndim):
                raise ShapeError(
                    f"The plan of output {k} is for {each.shape[0]} samples of {each.shape[1]} "
                    f"dimensions; it must be for {size} of {spec.ndim}."
                )

    def _check_values(self, values: tuple[np.ndarray, ...], size: int) -> None:
        for k, (each, dtype) in enumerate(zip(values, self._dtypes, strict=True)):
            if each.dtype is not dtype and each.dtype != dtype:
                raise DataTypeError(
                    f"The plan made elements of type {each.dtype} for output {k} where the "
                    f"declaration says {dtype}."
                )
            if len(each) != size:
                raise ShapeError(f"The plan made {len(each)} samples where there are {size}.")
