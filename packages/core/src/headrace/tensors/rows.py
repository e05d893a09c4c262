"""Several samples and where they are in memory: what operators on chunks read and write."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any, overload

import numpy as np

from headrace.tensors.addresses import addresses_of
from headrace.tensors.buffer_sizes import ALIGNMENT_BYTES
from headrace.tensors.gpu.batch import volumes

if TYPE_CHECKING:
    _Base = Sequence[np.ndarray]
else:
    _Base = object  # Python code would run for each `isinstance` of a class below an abstract one


class Rows(_Base):
    """Several samples, one array each."""

    __slots__ = ("_addresses", "_dense", "_parts", "_rows", "_shapes", "begins", "flat")

    def __init__(self, rows: list[np.ndarray] | None = None) -> None:
        self._rows = rows
        self._addresses: np.ndarray | None = None
        self._shapes: np.ndarray | None = None
        self._dense: np.ndarray | None = None
        self._parts: tuple[Sequence[np.ndarray], np.ndarray, np.ndarray] | None = None
        """Several pieces of memory, which of these each is in, and where it begins there."""
        self.flat: np.ndarray | None = None
        """Memory that all of them are in, 1-D, where there is such; `begins` then says where."""
        self.begins: np.ndarray | None = None
        """int64 ``(samples,)``: the element of `flat` with which each sample begins."""

    @classmethod
    def of_memory(cls, flat: np.ndarray, begins: np.ndarray, shapes: np.ndarray) -> Rows:
        """Contiguous samples of shapes ``(samples, ndim)`` in one piece of memory."""
        made = cls()
        made.flat, made.begins, made._shapes = flat, begins, shapes
        return made

    @classmethod
    def of_arrays(cls, arrays: list[np.ndarray], addresses: np.ndarray, shapes: np.ndarray) -> Rows:
        """Contiguous arrays at known addresses, uint64 ``(samples,)``."""
        made = cls(arrays)
        made._addresses, made._shapes = addresses, shapes
        return made

    @classmethod
    def of_parts(
        cls, parts: Sequence[np.ndarray], numbers: np.ndarray, begins: np.ndarray, sizes: np.ndarray
    ) -> Rows:
        """1-D samples in several pieces of memory, 1-D, each in one of them."""
        made = cls()
        made._parts, made._shapes = (parts, numbers, begins), sizes[:, np.newaxis]
        starts = np.array([part.__array_interface__["data"][0] for part in parts], np.int64)
        made._addresses = (starts[numbers] + begins * parts[0].itemsize).astype(np.uint64)
        return made

    @classmethod
    def of_row(cls, row: np.ndarray, shapes: np.ndarray) -> Rows:
        """A single contiguous sample, of the only one of `shapes`."""
        made = cls.of_memory(row.reshape(-1), np.zeros(1, np.int64), shapes)
        made._rows = [row]
        return made

    @classmethod
    def of_array(cls, values: np.ndarray) -> Rows:
        """The elements of `values` along its outermost axis."""
        count, shape = len(values), values.shape[1:]
        begins = np.arange(count, dtype=np.int64) * math.prod(shape)
        shapes = np.full((count, len(shape)), shape, np.int64)
        made = cls.of_memory(values.reshape(-1), begins, shapes)
        made._dense = values
        return made

    def window(self, anchors: np.ndarray, sizes: np.ndarray) -> Rows:
        """Elements of each from number `anchors` on, so many of them: 1-D samples alone."""
        if self.flat is not None and self.begins is not None:
            return Rows.of_memory(self.flat, self.begins + anchors, sizes[:, None])
        spans = zip(self.rows, anchors.tolist(), (anchors + sizes).tolist(), strict=True)
        return Rows([row[begin:end] for row, begin, end in spans])

    @property
    def rows(self) -> list[np.ndarray]:
        """The samples."""
        if self._rows is None:
            self._rows = self._made()
        return self._rows

    @rows.setter
    def rows(self, rows: list[np.ndarray]) -> None:
        """These very arrays are the samples."""
        self._rows = rows

    def _made(self) -> list[np.ndarray]:
        """Views of the samples."""
        if self._dense is not None:
            return [self._dense[k, ...] for k in range(len(self._dense))]
        if self._parts is not None:
            parts, numbers, starts = self._parts
            places = zip(
                numbers.tolist(), starts.tolist(), (starts + self.sizes).tolist(), strict=True
            )
            return [parts[n][begin:end] for n, begin, end in places]
        flat, begins, shapes = self.flat, self.begins, self._shapes
        assert flat is not None
        assert begins is not None
        assert shapes is not None
        spans = zip(begins.tolist(), (begins + self.sizes).tolist(), strict=True)
        if shapes.shape[1] == 1:
            return [flat[begin:end] for begin, end in spans]
        return [
            flat[begin:end].reshape(shape)
            for (begin, end), shape in zip(spans, shapes.tolist(), strict=True)
        ]

    @property
    def shapes(self) -> np.ndarray:
        """Their shapes, int64 ``(samples, ndim)``."""
        if self._shapes is None:
            rows = self.rows
            self._shapes = np.array([row.shape for row in rows], np.int64).reshape(len(rows), -1)
        return self._shapes

    @property
    def sizes(self) -> np.ndarray:
        """Number of elements of each, int64 ``(samples,)``."""
        return volumes(self.shapes)

    @property
    def dtype(self) -> np.dtype:
        """Type of the elements."""
        if self._parts is not None:
            return self._parts[0][0].dtype
        return self.rows[0].dtype if self.flat is None else self.flat.dtype

    @property
    def addresses(self) -> np.ndarray:
        """Addresses of the first elements, uint64 ``(samples,)``; makes all rows contiguous.

        The addresses are valid as long as this object lives.
        """
        if self._addresses is None:
            if self.flat is not None and self.begins is not None:
                start: int = self.flat.__array_interface__["data"][0]  # a third of `ctypes.data`
                self._addresses = (self.begins * self.flat.itemsize + start).astype(np.uint64)
            else:
                rows = self.rows
                if not all(row.flags.c_contiguous for row in rows):
                    rows = self._rows = [np.ascontiguousarray(row) for row in rows]
                self._addresses = addresses_of(rows)
        return self._addresses

    @property
    def dense(self) -> np.ndarray | None:
        """All of them as one array, ``(samples, ...)``, a view; `None` unless they are of one shape
        and as far from one another.
        """
        if self._dense is not None:
            return self._dense
        flat, begins = self.flat, self.begins
        shapes = self.shapes
        if flat is None or begins is None or np.count_nonzero(shapes != shapes[0]):
            return None
        pitch = 0
        if len(begins) > 1:
            pitches = begins[1:] - begins[:-1]
            pitch = int(pitches[0])
            if np.count_nonzero(pitches != pitch):
                return None
        shape = tuple(shapes[0].tolist())
        strides = [flat.itemsize * math.prod(shape[axis + 1 :]) for axis in range(len(shape))]
        return np.ndarray(
            (len(self), *shape),
            flat.dtype,
            flat,
            int(begins[0]) * flat.itemsize,
            (pitch * flat.itemsize, *strides),
        )

    @classmethod
    def joined(cls, several: Sequence[Rows]) -> Rows:
        """Samples of several, one after the other."""
        first = several[0]
        if len(several) == 1:
            return first
        flat, begins = first.flat, [r.begins for r in several if r.begins is not None]
        if flat is not None and all(rows.flat is flat for rows in several):
            shapes = np.concatenate([rows.shapes for rows in several])
            return cls.of_memory(flat, np.concatenate(begins), shapes)
        dense = [rows.dense for rows in several]
        known = [values for values in dense if values is not None]
        if len(known) == len(dense) and len({(v.shape[1:], v.dtype) for v in known}) == 1:
            return cls.of_array(np.concatenate(known))
        return cls([row for rows in several for row in rows])

    def taken(self, places: np.ndarray) -> Rows:
        """Some of them, by their numbers, in the memory that they are in."""
        if self._dense is not None and self._dense.flags.c_contiguous:
            return Rows.of_array(self._dense[places])
        if self._parts is not None:
            parts, numbers, begins = self._parts
            return Rows.of_parts(parts, numbers[places], begins[places], self.sizes[places])
        if self.flat is not None and self.begins is not None:
            return Rows.of_memory(self.flat, self.begins[places], self.shapes[places])
        return self.subset(places.tolist())

    def subset(self, kept: Sequence[int]) -> Rows:
        """Some of them."""
        return Rows([self.rows[k] for k in kept])

    def __len__(self) -> int:
        return len(self._shapes) if self._rows is None else len(self._rows)  # type: ignore[arg-type]

    def __iter__(self) -> Iterator[np.ndarray]:
        return iter(self.rows)

    @overload
    def __getitem__(self, index: int) -> np.ndarray: ...
    @overload
    def __getitem__(self, index: slice) -> list[np.ndarray]: ...
    def __getitem__(self, index: int | slice) -> Any:
        return self.rows[index]


Sequence.register(Rows)


def pack_rows(shapes: np.ndarray, dtype: np.dtype, empty: Callable[..., np.ndarray]) -> Rows:
    """Arrays of shapes ``(samples, ndim)`` in one piece of memory from `empty`.

    Each begins at a multiple of 64 bytes.
    """
    step = ALIGNMENT_BYTES // dtype.itemsize
    sizes = (volumes(shapes) + (step - 1)) // step * step
    ends = np.cumsum(sizes)
    return Rows.of_memory(empty((int(ends[-1]),), dtype), ends - sizes, shapes)
