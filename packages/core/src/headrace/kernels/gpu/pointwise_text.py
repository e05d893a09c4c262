"""Kernels that compute terms: the CUDA text, and what launches need to know of it.

Generated is the struct `Body` of ``cuda/pointwise_loop.cuh``. Parts of the term that are the same
for a whole sample are computed once a thread, in its constructor.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from headrace.kernels.gpu.pointwise_terms import (
    Call,
    Constant,
    Number,
    Source,
    Term,
    nodes,
    written,
)
from headrace.kernels.gpu.program import C_TYPES, Kernel
from headrace.kernels.gpu.records import THREADS

_VECTOR_BYTES = 16
_MOST_VECTORS = 4
_MOST_ELEMENTS = 64

Access = tuple[int, ...] | None
"""Axes by which a source is read: `None` in step with the output; else by its position along these
axes of the output, which is seen with few axes. Without any, it is one value a sample.
"""

_BODY = """
struct Body {{
  using Out = {out};
  static constexpr int length = {length}, count = {count};
  struct Sample {{{fields}
  }};
  struct Vectors {{{vector_fields}
  }};
  Sample sample;{members}

  __device__ Body(const Sample& row, int32 number, int32* faults) : sample(row) {{{per_sample}
  }}

  __device__ __forceinline__ bool aligned() const {{
    return {aligned};
  }}

  __device__ __forceinline__ Vectors read(int64 at) const {{
    return {{{reads}}};
  }}

  __device__ __forceinline__ Out element({parameters}) const {{{per_element}
    return {result};
  }}

  __device__ __forceinline__ Out compute(int64 at) const {{{position}
    return element({from_memory});
  }}

  __device__ __forceinline__ Vector<Out, length> compute(const Vectors& read, int64 at) const {{
    Vector<Out, length> result;{position}
#pragma unroll
    for (int i = 0; i < length; ++i) {{
      result.values[i] = element({from_vectors});{advance}
    }}
    return result;
  }}
}};
"""


@dataclass(frozen=True, slots=True, eq=False)
class PointwiseKernel:
    """A generated kernel, and what its launches need to know of it."""

    kernel: Kernel
    row: np.dtype
    """Type of the rows of its table."""
    length: int
    """Elements of one access of memory."""
    tile: int
    """Elements that a block computes."""


@lru_cache(maxsize=1024)
def pointwise_kernel(
    term: Term, accesses: tuple[Access, ...], axes: int = 1, *, wide: bool = False
) -> PointwiseKernel:
    """The kernel that computes `term`."""
    return _PointwiseWriter(term, accesses, axes, wide).kernel()


class _PointwiseWriter:
    """Writes the text for one term."""

    def __init__(self, term: Term, accesses: tuple[Access, ...], axes: int, wide: bool) -> None:
        self.term = term
        self.accesses = accesses
        self.axes = axes
        self.index, self.stride = ("uint64", "int64") if wide else ("uint32", "int32")
        self.nodes = list(nodes(term))
        sources = sorted(_of(self.nodes, Source), key=lambda s: s.index)
        self.sources = sources
        self.whole = [s for s in sources if accesses[s.index] is None]
        self.single = [s for s in sources if accesses[s.index] == ()]
        self.located = [s for s in sources if accesses[s.index]]
        self.members: list[str] = []
        self.per_sample: list[str] = []
        self.per_element: list[str] = []

    def kernel(self) -> PointwiseKernel:
        length, count = self._work_of_a_thread()
        fields = list(self._fields())
        row = np.dtype([(name, kind) for name, _, kind in fields], align=True)
        result = self._compute()
        position = ""
        if self.located:
            arguments = f"sample.extents, static_cast<{self.index}>(at)"
            position = f"\n    Position<{self.index}, {self.axes}> position({arguments});"
        by_element = [s for s in self.sources if self.accesses[s.index] != ()]
        text = _BODY.format(
            out=_c(self.term),
            length=length,
            count=count,
            fields=_lines((f"{declared};" for _, declared, _ in fields), 4),
            vector_fields=_lines(
                (f"Vector<{_c(s)}, length> source{s.index};" for s in self.whole), 4
            ),
            members=_lines((f"{m};" for m in self.members), 2),
            per_sample=_lines((f"{s};" for s in self.per_sample), 4),
            aligned=" && ".join(
                f"::aligned<length>(sample.source{s.index} - sample.shift)" for s in self.whole
            )
            or "true",
            reads=", ".join(f"vector_at<length>(sample.source{s.index} + at)" for s in self.whole),
            parameters=", ".join(f"{_c(s)} source{s.index}" for s in by_element),
            per_element=_lines((f"{s};" for s in self.per_element), 4),
            result=result,
            position=position,
            advance="\n      position.advance();" if self.located else "",
            from_memory=", ".join(
                self._read(s, "element_at(sample.source{} + at)") for s in by_element
            ),
            from_vectors=", ".join(self._read(s, "read.source{}.values[i]") for s in by_element),
        )
        kernel = Kernel("pointwise_loop.cuh", "pointwise<Body>", text)
        return PointwiseKernel(kernel, row, length, THREADS * length * count)

    def _work_of_a_thread(self) -> tuple[int, int]:
        """Elements of a vector, and vectors."""
        widest = max(n.dtype.itemsize for n in (self.term, *self.whole))
        length = _VECTOR_BYTES // widest
        if any(c.heavy for c in _of(self.nodes, Call)):
            return length, 1
        count = min(_MOST_VECTORS, _MOST_ELEMENTS // length)
        return length, max(1, count // max(1, len(self.whole) // 2))

    def _fields(self) -> Iterable[tuple[str, str, Any]]:
        """Name, declaration and NumPy type of each field of a row."""
        yield "out", f"{_c(self.term)}* out", np.uint64
        for s in self.sources:
            yield f"source{s.index}", f"const {_c(s)}* source{s.index}", np.uint64
        yield "size", "int64 size", np.int64
        yield "first_tile", "uint32 first_tile", np.uint32
        yield "shift", "int32 shift", np.int32
        if self.located:
            yield "extents", f"{self.index} extents[{self.axes}]", (self.index, (self.axes,))
        for s in self.located:
            name, count = f"strides{s.index}", len(self.accesses[s.index] or ())
            yield name, f"{self.stride} {name}[{count}]", (self.stride, (count,))
        for n in sorted(_of(self.nodes, Number), key=lambda n: n.index):
            yield f"number{n.index}", f"{_c(n)} number{n.index}", n.dtype

    def _compute(self) -> str:
        """Name of the result; statements that compute parts are written to where they belong."""
        same_for_sample: set[str] = set()

        def leaf(node: Any) -> str:
            if isinstance(node, Constant):
                name = node.text
            elif isinstance(node, Number):
                name = f"sample.number{node.index}"
            elif isinstance(node, Source):
                name = f"source{node.index}"
                if node not in self.single:
                    return name
                self.members.append(f"{_c(node)} {name}")
                self.per_sample.append(f"{name} = element_at(row.{name})")
            else:
                name = f"fault{node.index}"
                self.members.append(f"Fault {name}")
                self.per_sample.append(f"{name} = Fault{{faults + {node.index}, number}}")
            same_for_sample.add(name)
            return name

        def call(node: Call, operands: list[str]) -> str:
            name = f"t{len(self.per_sample) + len(self.per_element)}"
            text = f"{node.function}({', '.join(operands)})"
            if same_for_sample.issuperset(operands):
                self.members.append(f"{_c(node)} {name}")
                self.per_sample.append(f"{name} = {text}")
                same_for_sample.add(name)
            else:
                self.per_element.append(f"const {_c(node)} {name} = {text}")
            return name

        return written(self.term, leaf, call)

    def _read(self, source: Source, whole: str) -> str:
        axes = self.accesses[source.index]
        if axes is None:
            return whole.format(source.index)
        place = " + ".join(
            f"static_cast<int64>(position.at[{axis}]) * sample.strides{source.index}[{k}]"
            for k, axis in enumerate(axes)
        )
        return f"element_at(sample.source{source.index} + {place})"


def _of(found: Iterable[Any], kind: type) -> list[Any]:
    return [node for node in found if isinstance(node, kind)]


def _c(term: Term) -> str:
    return C_TYPES[term.dtype]


def _lines(lines: Iterable[str], indent: int) -> str:
    return "".join(f"\n{' ' * indent}{line}" for line in lines)
