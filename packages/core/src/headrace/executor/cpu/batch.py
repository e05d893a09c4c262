"""The batch an edge carries through one iteration, filled sample by sample."""

from __future__ import annotations

import math
import operator
import threading
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.errors import ShapeError
from headrace.executor.cpu.packed_rows import PackedRows, PackedSegment
from headrace.executor.cpu.shape_statistics import ShapeStatistics
from headrace.executor.own_results import type_error
from headrace.executor.source_names import SourceNames, some_of
from headrace.kernels.cpu import copy_rows, strided
from headrace.operators.support.planning import SMALL_ELEMENTS
from headrace.operators.support.schema import Spec
from headrace.tensors.addresses import addresses_in
from headrace.tensors.gpu.runtime import Event
from headrace.tensors.pool import HOST_POOL, HostPool
from headrace.tensors.rows import Rows, pack_rows
from headrace.tensors.strided_rows import StridedRows
from headrace.tensors.tensor_list import TensorListCPU
from headrace.types import storage_dtype

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

    from headrace.kernels.cpu.decode.jpeg_scan import ScannedJpegs


_LARGEST_GUESS_BYTES = 1 << 28
"""So much memory may be taken for a batch of which the shape of one sample is known."""

_UNDECIDED = (-1,)
"""In place of the shape of rows, where the first one was too large to go by."""

_OUTSIDE, _INSIDE, _SHARED, _PACKED = range(4)
"""Storage of a row: own memory, memory of the whole batch, memory of another batch, or a
segment."""


class BatchBuffer:
    """Rows for the samples of one edge.

    The first sample to ask decides the shape of a row, and memory for the whole batch is taken at
    once, so that samples of one shape end up side by side without a copy. A sample of another
    shape gets memory of its own, and the batch is ragged.
    """

    __slots__ = (
        "_dense",
        "_dtype",
        "_history",
        "_in_dense",
        "_lock",
        "_ndim",
        "_packed",
        "_pending",
        "_pool",
        "_row_shape",
        "_rows",
        "_rows_lock",
        "_segments",
        "_shared",
        "_unmade",
        "_whole",
        "event",
        "sources",
        "spec",
    )

    external = False
    """No other code writes to the memory."""
    batch = None
    """There is no batch in device memory."""
    scanned: ScannedJpegs | None = None
    """Parsed JPEG headers, if they were read together with the files."""

    def __init__(
        self, size: int, spec: Spec, history: ShapeStatistics, pool: HostPool = HOST_POOL
    ) -> None:
        self._rows: list[np.ndarray | None] = [None] * size
        self._pending = False
        """True if some rows are not arrays of their own yet; set after `_in_dense`."""
        self._unmade: list[tuple[Sequence[int], Rows, int]] = []
        """The `_PACKED` and `_SHARED` ones of these: positions, samples, and which they are."""
        self.sources: Sequence[str] | None = None
        self.spec = spec
        self.event: Event | None = None
        """Event after which the samples are there, if they are copied from a GPU."""
        self._pool = pool
        self._dtype = storage_dtype(spec.dtype)
        self._ndim = spec.ndim
        self._history = history
        self._whole: BatchBuffer | None = None
        """The batch that the samples were `taken` from."""
        self._dense: np.ndarray | None = None
        self._row_shape: tuple[int, ...] | None = None
        self._in_dense = bytearray(size)
        """For each row `_INSIDE`, `_OUTSIDE`, `_SHARED` or `_PACKED`."""
        self._lock = threading.Lock()
        """Held while the shape of rows is decided, and memory taken for them. A row itself is
        written without it, by the thread that has its sample.
        """
        self._rows_lock = threading.Lock()
        """Guards `_pending`, and rows that are made of the whole batch."""
        self._shared: BatchBuffer | None = None
        """The batch whose memory `_SHARED` rows are views of."""
        self._packed: PackedRows | None = None
        self._segments: list[PackedSegment] = []

    def expect_upload(self) -> None:
        """Note that the batch will be uploaded: ragged rows then go to one piece of memory."""
        if self._history.ragged:
            self._packed = PackedRows(self._pool, self._history.bytes)

    @classmethod
    def of_values(
        cls, values: np.ndarray, spec: Spec, history: ShapeStatistics, pool: HostPool = HOST_POOL
    ) -> BatchBuffer:
        """The finished batch `values`, whose outermost axis counts the samples."""
        self = cls(len(values), spec, history, pool)
        self._dtype, self._ndim = values.dtype, values.ndim - 1
        self.adopt(values)
        return self

    @property
    def rows(self) -> list[np.ndarray | None]:
        """The samples; `None` where there is none yet. Arrays are made on demand."""
        if self._pending:
            with self._rows_lock:  # other readers wait until all are there
                dense, places, rows = self._dense, self._in_dense, self._rows
                if dense is not None:
                    for index, row in enumerate(rows):
                        if row is None and places[index] == _INSIDE:
                            rows[index] = dense[index, ...]
                for indices, packed, place in self._unmade:  # the latest of a sample is its own
                    for index, row in zip(indices, packed.rows, strict=True):
                        if places[index] == place:
                            rows[index] = row
                self._unmade, self._pending = [], False
        return self._rows

    @rows.setter
    def rows(self, rows: list[np.ndarray | None]) -> None:
        self._rows, self._unmade, self._pending = rows, [], False

    @property
    def pool(self) -> HostPool:
        """Pool that rows are allocated from, and copies of the finished batch."""
        return self._pool

    @pool.setter
    def pool(self, pool: HostPool) -> None:
        self._pool = pool

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        return self._dtype

    def empty(self, shape: tuple[int, ...], dtype: DTypeLike) -> np.ndarray:
        """Memory from which rows can be adopted without a copy."""
        return self._pool.empty(shape, dtype)

    def check(self, shape: Sequence[int], dtype: DTypeLike) -> None:
        """Check that samples agree with the declaration of their operator."""
        if dtype != self._dtype:
            raise type_error(dtype, self._dtype)
        if len(shape) == self._ndim:
            return
        with self._lock:
            if self._ndim is None:
                self._ndim = len(shape)
        if len(shape) != self._ndim:
            whose = "other samples have" if self.spec.ndim is None else "its declaration says"
            raise ShapeError(
                f"The operator made a sample of {len(shape)} axes, of shape {tuple(shape)}, where "
                f"{whose} {self._ndim}; all samples of a batch have as many axes, and its `infer` "
                "has to tell how many."
            )

    def row(self, index: int, shape: tuple[int, ...]) -> np.ndarray:
        """Memory for sample `index`."""
        dense = self._dense_of(tuple(shape))
        if dense is not None:
            row: np.ndarray = dense[index, ...]
            self._in_dense[index] = _INSIDE
        else:
            self._in_dense[index] = _OUTSIDE
            packed = self._packed
            found = None if packed is None else packed.empty(shape, self._dtype)
            row = self._pool.empty(tuple(shape), self._dtype) if found is None else found
        self.rows[index] = row
        return row

    def _dense_of(self, shape: tuple[int, ...]) -> np.ndarray | None:
        """The memory of the whole batch, if rows of this shape have their places there."""
        if self._row_shape is None and not self._history.ragged:
            with self._lock:
                if self._row_shape is None:
                    self._decide(shape)
        return self._dense if self._row_shape == shape else None

    def _decide(self, shape: tuple[int, ...]) -> None:
        """Take memory for the batch, given the shape of its first row. The caller holds the lock.

        Of much memory, one sample does not tell that it is needed: the others may be small. So
        much is taken when the last batch was of that shape.
        """
        size = len(self) * math.prod(shape) * self._dtype.itemsize
        if size <= _LARGEST_GUESS_BYTES or self._history.shape == shape:
            self._dense = self._pool.empty((len(self), *shape), self._dtype)
            self._row_shape = shape
        else:
            self._row_shape = _UNDECIDED

    def rows_for(self, indices: Sequence[int], shapes: np.ndarray) -> Rows:
        """Memory for several samples, of shapes ``(samples, ndim)``."""
        dense = self._dense_for(shapes)
        if dense is None:
            found = pack_rows(shapes, self._dtype, self._pool.empty)
            assert found.flat is not None
            assert found.begins is not None
            self._segments.append(
                PackedSegment(indices[0], found.flat, found.begins, shapes, found)
            )
            self._note(indices, _PACKED, found)
            return found
        begins = np.array(indices, np.int64) * math.prod(dense.shape[1:])
        found = Rows.of_memory(dense.reshape(-1), begins, shapes)
        self.note_rows(indices)
        return found

    def addresses_for(self, indices: Sequence[int], shapes: np.ndarray) -> np.ndarray:
        """Addresses of the memory that `rows_for` gives, int64 ``(samples,)``."""
        dense = self._dense_for(shapes)
        if dense is None:
            return self.rows_for(indices, shapes).addresses.view(np.int64)
        self.note_rows(indices)
        return addresses_in(dense, indices)

    def _dense_for(self, shapes: np.ndarray) -> np.ndarray | None:
        """The memory of the whole batch, if samples of these shapes have their places there."""
        if self._history.ragged or (len(shapes) > 1 and (shapes != shapes[0]).any()):
            return None
        return self._dense_of(tuple(shapes[0].tolist()))

    def adopt(self, values: np.ndarray) -> None:
        """Take `values`, the whole batch, as it is; the rows are its outermost elements."""
        self._dense = values
        self._row_shape = values.shape[1:]
        self._in_dense = bytearray([_INSIDE]) * len(values)
        self._rows, self._pending = [None] * len(values), True

    def are_inside(self, indices: Sequence[int]) -> list[bool]:
        """Of each of these samples, whether it is in the memory of the whole batch."""
        places = self._in_dense
        return [places[index] == _INSIDE for index in indices]

    def own_rows(self, indices: Sequence[int]) -> list[np.ndarray]:
        """Return those of these samples that lie in ordinary memory allocated by this batch."""
        if self.event is not None or self._pool.is_page_locked:
            return []
        rows, places = self.rows, self._in_dense
        return [rows[k] for k in indices if places[k] != _SHARED]  # type: ignore[misc]

    def own_arrays(self) -> list[np.ndarray]:
        """Return the arrays that own the memory of the samples made so far.

        Samples that are views of another batch are left out: it has their memory.
        """
        places = self._in_dense
        found = [] if self._dense is None else [self._dense]
        rows = enumerate(self._rows)
        found += [segment.memory for segment in self._segments]
        found += [p.flat for _, p, place in self._unmade if place == _PACKED and p.flat is not None]
        return found + [row for k, row in rows if row is not None and places[k] == _OUTSIDE]

    def adopt_rows(self, indices: Sequence[int], values: Sequence[np.ndarray]) -> None:
        """Take `values` for these samples as they are; small ones of one size in one piece."""
        if isinstance(values, Rows) and values.flat is not None:
            if values.sizes.max(initial=0) <= SMALL_ELEMENTS:
                self.put_rows(indices, values)
            else:
                self._note(indices, _PACKED, values)
            return
        rows, inside = self.rows, self._in_dense
        for index, value in zip(indices, values, strict=True):
            rows[index] = value
            inside[index] = _OUTSIDE

    def put_rows(self, indices: Sequence[int], values: Sequence[np.ndarray] | np.ndarray) -> None:
        """Copy `values`, one for each of these samples, into the batch."""
        if isinstance(values, np.ndarray):
            dense = None if self._history.ragged else self._dense_of(values.shape[1:])
            if dense is not None:
                dense[indices] = values
                self.note_rows(indices)
                return
        if isinstance(values, Rows):
            rows = self.rows_for(indices, values.shapes)
            if isinstance(values, StridedRows):
                size = self._dtype.itemsize
                strided.copy_strided(
                    *(values.origins, values.strides, values.shapes, rows.addresses, size)
                )
                return
            sizes = rows.sizes * self._dtype.itemsize
            copy_rows.copy_pieces(values.addresses, rows.addresses, sizes)
            return
        rows = self.rows_for(indices, np.array([value.shape for value in values], np.int64))
        for row, value in zip(rows.rows, values, strict=True):
            row[...] = value

    def set_sources(self, indices: Sequence[int], sources: Sequence[str]) -> None:
        """Note where these samples come from."""
        with self._lock:
            known = self.sources
            if not isinstance(known, SourceNames):
                known = self.sources = SourceNames(len(self), known)
        known.put(indices, sources)

    @property
    def ndim(self) -> int | None:
        """Number of axes of samples; `None` as long as it is unknown."""
        return self._ndim

    def expect_rows(self) -> np.ndarray | None:
        """Memory for the whole batch, for samples shaped as those of earlier batches were.

        A writer of samples there reports them with `note_rows`.
        """
        history = self._history
        if self._row_shape is None and not history.ragged and history.shape is not None:
            with self._lock:
                if self._row_shape is None:
                    self._decide(history.shape)
        return self._dense

    def note_rows(self, indices: Sequence[int]) -> None:
        """Record that these samples were written to the memory from `expect_rows`."""
        if len(indices):
            self._note(indices, _INSIDE, None)

    def _note(self, indices: Sequence[int], place: int, packed: Rows | None) -> None:
        """Record where these samples are, which are no arrays of their own yet."""
        count = len(indices)
        with self._rows_lock:
            if indices[-1] - indices[0] == count - 1:  # they follow one another
                part = slice(indices[0], indices[-1] + 1)
                self._rows[part] = [None] * count
                self._in_dense[part] = bytes([place]) * count
            else:
                for index in indices:
                    self._rows[index] = None
                    self._in_dense[index] = place
            if packed is not None:
                self._unmade.append((indices, packed, place))
            self._pending = True

    def take_rows(self, indices: Sequence[int], values: Sequence[np.ndarray]) -> None:
        """Take over `values`, not written to elsewhere; note their shapes for later batches.

        The first ones that are all of one shape decide what others are expected to be.
        """
        if not values:
            return
        history = self._history
        shapes = {value.shape for value in values}
        history.ragged = history.ragged or len(shapes) > 1
        shape = next(iter(shapes))
        if not history.ragged:
            with self._lock:
                if self._row_shape is None:
                    self._decide(shape)
                    history.shape = shape
            if self._row_shape is not _UNDECIDED:
                history.ragged = self._row_shape != shape
        if history.ragged or self._dense is None:
            self.adopt_rows(indices, values)
            return
        for index, value in zip(indices, values, strict=True):
            np.copyto(self._dense[index, ...], value)
        self.note_rows(indices)

    @property
    def dense(self) -> np.ndarray | None:
        """All samples as one array, in order; `None` if they do not lie in one piece."""
        return self._dense if self._are_all(_INSIDE) else None

    def _are_all(self, place: int) -> bool:
        return self._in_dense.count(place) == len(self._in_dense)

    @property
    def segments(self) -> list[PackedSegment] | None:
        """The memory that all samples are in, in order, where these are few segments of it, and
        page-locked.
        """
        segments = self._segments
        if not (segments and self._pool.is_page_locked):
            return None
        found = sorted(segments, key=lambda segment: segment.first)
        rows: list[np.ndarray | None] = []
        for segment in found:
            rows += segment.rows.rows
        # A sample may have got other memory since.
        same = len(rows) == len(self.rows) and all(map(operator.is_, rows, self.rows))
        return found if same else None

    def put(self, index: int, value: np.ndarray) -> None:
        """Store `value` as sample `index`; copy it unless it is the row that `row` has returned."""
        self.check(value.shape, value.dtype)
        if self.rows[index] is not value:
            strided.copy_view(value, self.row(index, value.shape))

    def share(self, index: int, value: np.ndarray, origin: BatchBuffer) -> bool:
        """Store `value` as sample `index` without a copy, if it is a view of that of `origin`.

        So an operator that only looks at data in another way, like `reshape`, costs nothing.
        """
        base = value.base
        row = origin.rows[index]
        if (
            base is None
            or row is None
            or base is not (row.base if row.base is not None else row)
            or value.dtype != self._dtype
            or value.ndim != self._ndim
            or not value.flags.c_contiguous
        ):
            return False
        if self._shared is not origin:
            with self._lock:
                if self._shared is not None:  # merged branches may show different batches
                    return False
                self._shared = origin
        self.rows[index] = value
        self._in_dense[index] = _SHARED
        return True

    def share_all(self, indices: Sequence[int], values: Rows, origin: BatchBuffer) -> bool:
        """Store `values` as views too, if the first of them is a view of a batch `origin`."""
        flat, whole = values.flat, origin.dense
        if flat is None or whole is None or flat.base is None or whole[:1].base is not flat.base:
            if not self.share(indices[0], values[0], origin):
                return False
            for index, value in zip(indices[1:], values[1:], strict=True):
                if not self.share(index, value, origin):
                    self.put(index, value)
            return True
        if flat.dtype != self._dtype or values.shapes.shape[1] != self._ndim:
            return False
        with self._lock:
            if self._shared is not origin and self._shared is not None:
                return False
            self._shared = origin
        self._note(indices, _SHARED, values)
        return True

    def _shared_dense(self, packed: list[Rows] | None) -> np.ndarray | None:
        """The whole batch, if it is another one looked at in another way."""
        origin, count = self._shared, len(self)
        dense = origin.dense if origin is not None and self._are_all(_SHARED) else None
        if dense is None:
            return None
        shapes = self._shapes(packed)
        size = math.prod(next(iter(shapes))) * self._dtype.itemsize
        if len(shapes) != 1 or count * size != dense.nbytes:
            return None
        shape = shapes.pop()
        return dense.view(self._dtype).reshape((count, *shape))

    def replaced(self, replacements: Mapping[int, int]) -> BatchBuffer:
        """A copy of the batch in which other samples take the place of failed ones."""
        self.wait()
        order = [replacements.get(index, index) for index in range(len(self))]
        rows = [self.rows[index] for index in order]
        made = BatchBuffer(len(self), self.spec, ShapeStatistics(), self._pool)
        made.rows = rows
        if len({None if row is None else row.shape for row in rows}) == 1 and rows[0] is not None:
            made._gather()
        else:
            made.rows = [None if row is None else self._pool.copy_of(row) for row in rows]
        if self.sources is not None:
            made.sources = some_of(self.sources, order)
        return made

    def taken(self, places: np.ndarray) -> BatchBuffer:
        """The samples at these places, in the same memory: see `headrace.executor.guards`."""
        order = places.tolist()
        made = BatchBuffer(len(order), self.spec, self._history, self._pool)
        made._whole = self
        rows = self.rows
        made.rows = [rows[index] for index in order]
        made.event = self.event
        if self.sources is not None:
            made.sources = some_of(self.sources, order)
        return made

    def _gather(self) -> None:
        """Copy the rows, all of one shape, into one piece of memory."""
        rows: list[np.ndarray] = self.rows  # type: ignore[assignment]
        dense = self._pool.empty((len(rows), *rows[0].shape), rows[0].dtype)
        np.stack(rows, out=dense)
        self.adopt(dense)

    def _copied_from_gpu(self) -> TensorListCPU:
        """The finished batch in ordinary memory.

        A user may copy a tensor to a GPU and drop it before the copy is done, which only memory
        that is not page-locked survives: such copies wait.
        """
        self.wait()
        layout, dtype = self.spec.layout, self.spec.dtype
        pool = self._pool if self._pool.is_ordinary else HOST_POOL
        if self._dense is not None:
            dense = pool.copy_of(self._dense)
            return TensorListCPU._from_dense(dense, layout, self.sources, dtype)
        rows = [pool.copy_of(row) for row in self.rows if row is not None]
        return TensorListCPU._from_samples(rows, layout, dtype, self.sources)

    def note_upload(self) -> None:
        """Note the size of the finished batch, which is uploaded now, for later batches."""
        if self._whole is not None:
            self._whole.note_upload()
        elif self.dense is None:
            history = self._history
            self._learn_shapes()
            if self._packed is not None:
                history.bytes = max(self._packed.wanted * 5 // 4, history.bytes * 15 // 16)

    def _packed_rows(self) -> list[Rows] | None:
        """All samples, in order, where they are in few pieces and no arrays of their own yet."""
        with self._rows_lock:
            unmade = sorted(self._unmade, key=lambda part: part[0][0])
            order = [index for indices, _, _ in unmade for index in indices]
            places = {place for _, _, place in unmade}
            if len(self) < 2 or len(places) != 1 or order != list(range(len(self))):
                return None
            if not self._are_all(places.pop()):
                return None
        return [rows for _, rows, _ in unmade]

    def _shapes(self, packed: list[Rows] | None) -> set[tuple[int, ...]]:
        """The shapes that samples have."""
        if packed is None:
            return {row.shape for row in self.rows if row is not None}
        return {tuple(shape) for rows in packed for shape in rows.shapes.tolist()}

    def _learn_shapes(self, packed: list[Rows] | None = None) -> None:
        shapes, history = self._shapes(packed), self._history
        history.ragged = len(shapes) > 1
        history.shape = None if history.ragged else next(iter(shapes), None)

    def wait(self) -> None:
        """Wait until the samples are there."""
        if self.event is not None:
            self.event.synchronize()

    def __len__(self) -> int:
        return len(self._in_dense)

    def tensor_list(self) -> TensorListCPU:
        """The finished batch."""
        if self.event is not None:
            return self._copied_from_gpu()
        layout = self.spec.layout
        whole = self.dense
        packed = None if whole is not None else self._packed_rows()
        if whole is None:
            whole = self._shared_dense(packed)
        elif self._history.shape != self._row_shape:
            self._history.shape = self._row_shape
        if whole is not None:
            return TensorListCPU._from_dense(whole, layout, self.sources, self.spec.dtype)
        # Memory for a whole batch of the first sample's shape would be wasted on ragged data, so
        # the next batch does without it, until all shapes are found equal again.
        self._learn_shapes(packed)
        if self._row_shape is _UNDECIDED and not self._history.ragged:
            self._gather()
            assert self._dense is not None
            return TensorListCPU._from_dense(self._dense, layout, self.sources, self.spec.dtype)
        if packed is not None:
            return TensorListCPU._from_packed(packed, layout, self.spec.dtype, self.sources)
        return TensorListCPU._from_samples(
            self.rows,  # type: ignore[arg-type]
            layout,
            self.spec.dtype,
            self.sources,
        )
