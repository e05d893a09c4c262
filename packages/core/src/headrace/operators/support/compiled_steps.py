"""Steps as operators write them for one compiled loop: see `Operator.compiled`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

if TYPE_CHECKING:
    from headrace.operators.support.schema import Spec

Function = Callable[[int, int, int, int], int]
"""A function of an instruction; see `headrace.kernels.cpu.step_loops`."""
Word = int | float | np.ndarray


class SampleColumns(NamedTuple):
    """Columns that describe the samples of a register.

    Attributes
    ----------
    address
        Number of the column with their addresses.
    extents
        Number of the first column with their extents; there are `ndim`.
    strides
        Number of the first column with the bytes from one element to the next along each axis; -1
        where samples are C-contiguous. These columns, like `address`, are known once a sample is
        carried, not to plans.
    """

    dtype: np.dtype
    ndim: int
    address: int
    extents: int
    strides: int = -1

    @property
    def words(self) -> tuple[int, int, int]:
        """The words of an instruction that reads or writes them."""
        return self.address, self.extents, self.ndim

    @property
    def view_words(self) -> tuple[int, int, int, int, int]:
        """The words of an instruction that reads them, whatever their strides are."""
        return self.address, self.extents, self.strides, self.ndim, self.dtype.itemsize


class PlannedColumns(NamedTuple):
    """Columns that the `plan` of an operator fills in, before an instruction with this number."""

    instruction: int
    step: Any
    outputs: tuple[SampleColumns, ...]
    first: int
    columns: int


class WindowWords(NamedTuple):
    """Words that tell windows: see `headrace.kernels.cpu.window_steps`."""

    is_crop: bool
    words: Sequence[Word]


class CompiledSteps:
    """Instructions of several steps, and the columns that they read and write."""

    def __init__(self) -> None:
        self.columns = 0
        """Number of columns."""
        self.plans: list[Function | None] = []
        self.carries: list[Function] = []
        self.words: list[np.ndarray] = []
        self.slots: list[tuple[int, int, int, int]] = []
        """Scratch memory; see `headrace.kernels.cpu.step_loops`."""
        self.planned: list[PlannedColumns] = []
        """Tables of plans of operators, in the order of instructions."""
        self.unplaced: set[int] = set()
        """Columns of addresses of outputs whose memory is that of a batch."""
        self.fits = True
        """False if a word has more than 64 bits."""
        self.are_small = False
        """True if only samples of few bytes are for these instructions."""
        self._kept: list[np.ndarray] = []
        """Arrays whose addresses are among the words."""

    def take(self, columns: int) -> int:
        """Number of the first of so many new columns."""
        first = self.columns
        self.columns += columns
        return first

    def samples(self, dtype: np.dtype, ndim: int) -> SampleColumns:
        """Columns for the samples of a register."""
        return SampleColumns(dtype, ndim, self.take(1), self.take(ndim))

    def place(self, dtype: np.dtype, ndim: int, *, leaves: bool) -> SampleColumns:
        """Columns for samples in scratch memory or, where they leave, in that of a batch."""
        made = self.samples(dtype, ndim)
        if leaves:
            self.unplaced.add(made.address)
        else:
            self.slots.append((made.address, made.extents, ndim, dtype.itemsize))
        return made

    def bytes(self) -> tuple[int, int]:
        """Columns of the address of scratch memory, and of how many bytes of it there are to be,
        which a plan fills in.
        """
        address, size = self.take(1), self.take(1)
        self.slots.append((address, size, 1, 1))
        return address, size

    def copy(self, data: SampleColumns, *, leaves: bool) -> SampleColumns:
        """A contiguous copy of samples."""
        from headrace.kernels.cpu import view_steps

        out = self.place(data.dtype, data.ndim, leaves=leaves)
        self.add(view_steps.plan, view_steps.carry_copied, (*data.view_words, *out.words[:2]))
        return out

    def add(self, plan: Function | None, carry: Function, words: Sequence[Word]) -> None:
        """Add an instruction. An array becomes two words: its address, and its length."""
        found: list[Any] = []
        for word in words:
            if isinstance(word, np.ndarray):
                self._kept.append(word)
                found += [word.ctypes.data, len(word)]
            elif isinstance(word, float):
                found.append(np.float64(word).view(np.int64))
            else:
                number = int(word)
                self.fits = self.fits and -(1 << 63) <= number < 1 << 63
                found.append(number if self.fits else 0)
        self.plans.append(plan)
        self.carries.append(carry)
        self.words.append(np.array(found, np.int64))


class CompiledStepContext:
    """Context of `Operator.compiled`, besides the inputs.

    Attributes
    ----------
    tensors
        Samples of each argument that is given as a tensor, by name.
    leaves
        Of each output, whether it is to be written to the memory of a batch.
    is_read
        Of each output, whether it is used.
    """

    def __init__(
        self,
        steps: CompiledSteps,
        tensors: Mapping[str, SampleColumns],
        specs: Sequence[Spec],
        dtypes: Sequence[np.dtype],
        leaves: Sequence[bool],
        step: Any,
    ) -> None:
        self.steps = steps
        self.tensors = tensors
        self.leaves = leaves
        self.is_read = step.read
        self._step = step
        self._specs = specs
        self._dtypes = dtypes

    def out(self, output: int = 0) -> SampleColumns:
        """Columns for the samples of an output. The plan fills in the extents; the addresses are
        those of its memory.
        """
        ndim = self._specs[output].ndim
        assert ndim is not None
        return self.steps.place(self._dtypes[output], ndim, leaves=self.leaves[output])

    def view(self, data: SampleColumns, *, placed: bool = False) -> SampleColumns:
        """Columns for views of `data`, whose extents the plan fills in, and all else the
        instruction. If `placed`, addresses are those of scratch memory before.
        """
        steps = self.steps
        if placed:
            made = steps.place(data.dtype, data.ndim, leaves=False)
        else:
            made = steps.samples(data.dtype, data.ndim)
        # What has one axis, and is not mirrored, is contiguous.
        return made if data.ndim == 1 else made._replace(strides=steps.take(data.ndim))

    def number(
        self, name: str, value: float | None = None, *, is_flag: bool = False
    ) -> tuple[Word, ...] | None:
        """The words of argument `name`, one number that is `value` where it is a constant; `None`
        where instructions do not know it. See `headrace.kernels.cpu.step_numbers`.
        """
        from headrace.kernels.cpu.step_numbers import CODES

        found = self.tensors.get(name)
        if found is None:
            return None if value is None else (-1, -1, 0, float(value))
        code = CODES.get(found.dtype)
        if code is None or found.ndim > 1 or (is_flag and found.dtype.kind == "f"):
            return None
        return found.address, found.extents if found.ndim else -1, code, 0.0

    def planned(self, count: int, *outputs: SampleColumns) -> int:
        """Number of the first of `count` columns with the table of the operator's `plan`, which
        tells the extents of `outputs`, too: integers, or bits of float64 numbers.
        """
        first = self.steps.take(count)
        place = len(self.steps.words)
        self.steps.planned.append(PlannedColumns(place, self._step, outputs, first, count))
        return first

    def temp(self, numbers: int, dtype: Any = np.float32) -> int:
        """Number of a column with the address of scratch memory for so many numbers."""
        address = self.steps.take(1)
        self.steps.slots.append((address, 0, 0, numbers * np.dtype(dtype).itemsize))
        return address
