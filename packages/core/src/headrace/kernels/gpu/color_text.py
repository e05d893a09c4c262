"""Kernels that compute functions of pixels: the CUDA text, and what launches need to know of it.

Generated is the struct `Body` of ``cuda/color_loop.cuh``. Between the steps of a chain values are
rounded to the types that they would have had in memory.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np

from headrace.kernels.cpu.color_spaces import CONVERSIONS
from headrace.kernels.gpu.color_steps import ColorConversion, Matrix, PerChannel, Step
from headrace.kernels.gpu.pointwise_terms import Call, Constant, Number, nodes, written
from headrace.kernels.gpu.program import C_TYPES, Kernel

RUNS, VIEWS = "color<Body, false>", "color<Body, true>"
"""Kernels for samples that are runs of memory, and for others."""

_BODY = """
struct Body {{
  static constexpr bool present = true;
  using In = {given};
  using Out = {made};
  static constexpr int in_channels = {in_channels}, out_channels = {out_channels};
  struct Numbers {{{fields}
  }};

  template <typename Given>
  static __device__ __forceinline__ void pixel(const Numbers& numbers,
                                               const Given (&given)[in_channels],
                                               Out (&made)[out_channels]) {{{statements}
  }}
}};
"""


@dataclass(frozen=True, slots=True, eq=False)
class ColorBody:
    """A generated struct, and what launches of kernels with it need to know."""

    text: str
    numbers: np.dtype
    """Type of what it reads for each sample, with one field for each array of numbers."""
    in_channels: int
    out_channels: int
    dtype: np.dtype
    out_dtype: np.dtype

    @property
    def in_place(self) -> bool:
        """True if results overwrite their sources: three channels of one type."""
        return self.dtype == self.out_dtype and self.in_channels == self.out_channels == 3

    @property
    def each(self) -> int:
        """Pixels of a thread, as in ``cuda/color_loop.cuh``."""
        return 16 // max(self.dtype.itemsize, self.out_dtype.itemsize)

    def kernel(self, *, view: bool) -> Kernel:
        """The kernel that does nothing else; `view`: with samples that are not runs of memory."""
        return Kernel("color_loop.cuh", VIEWS if view else RUNS, self.text)


@lru_cache(maxsize=1024)
def with_colors(kernel: Kernel, colors: ColorBody, argument: str = "Body") -> Kernel:
    """A kernel of ``cuda/X.cu`` whose last argument is a type of functions of pixels.

    ``cuda/X_colors.cuh`` has all that these need.
    """
    file = kernel.file.removesuffix(".cu") + "_colors.cuh"
    return Kernel(file, f"{kernel.name.removesuffix('>')}, {argument}>", colors.text)


@lru_cache(maxsize=1024)
def color_body(dtype: np.dtype, channels: int, steps: tuple[Step, ...]) -> ColorBody:
    """The struct that does `steps` with pixels of this type and so many channels."""
    writer = _ColorWriter(dtype, channels)
    for step in steps:
        writer.write(step)
    return writer.body()


class _ColorWriter:
    """Writes the text for one chain."""

    def __init__(self, dtype: np.dtype, channels: int) -> None:
        self.source, self.in_channels = dtype, channels
        self.dtype = dtype
        self.values = [f"given[{c}]" for c in range(channels)]
        self.fields: list[tuple[str, Any]] = []
        self.statements: list[str] = []

    def write(self, step: Step) -> None:
        """Add one step."""
        names = [f"numbers{len(self.fields) + k}" for k in range(step.arrays)]
        if isinstance(step, Matrix):
            self.fields.append((names[0], (np.float32, (12,))))
            self._matrix(step, f"numbers.{names[0]}")
        elif isinstance(step, ColorConversion):
            self._conversion(step)
        else:
            self._elements(step, names)
        self.dtype = step.dtype

    def _matrix(self, step: Matrix, numbers: str) -> None:
        a, b, c = self._as_floats()
        kind = C_TYPES[step.dtype]
        self.values = [
            self._value(
                kind,
                f"color_channel<{kind}>({a}, {b}, {c}, {numbers} + {3 * k}, {numbers}[{9 + k}])",
            )
            for k in range(3)
        ]

    def _conversion(self, step: ColorConversion) -> None:
        table, reverses = CONVERSIONS[step.given, step.wanted]
        values = self.values[::-1] if reverses else self.values
        matrix, offsets, shifts = table[:9].reshape(3, 3), table[9:12], table[12:]
        found = []
        for k in range(step.made):
            row = matrix[k]
            used = [j for j in range(3) if row[j]]
            if len(used) == 1 and row[used[0]] == 1 and not offsets[k] and not shifts[used[0]]:
                found.append(self._element(values[used[0]]))
                continue
            total = ""
            # What is multiplied with 0 adds nothing.
            for j in used:
                value = f"as_float({values[j]})"
                if shifts[j]:
                    value = f"__fsub_rn({value}, {_float(shifts[j])})"
                value = f"__fmul_rn({value}, {_float(row[j])})"
                total = f"__fadd_rn({total}, {value})" if total else value
            if offsets[k]:
                total = f"__fadd_rn({total}, {_float(offsets[k])})" if total else _float(offsets[k])
            found.append(self._value("uint8", f"color_rounded<uint8>({total})"))
        self.values = found

    def _elements(self, step: PerChannel, names: list[str]) -> None:
        parts = [part for part in nodes(step.term) if isinstance(part, Number)]
        for part in sorted(parts, key=lambda part: part.index):
            self.fields.append((names[part.index], part.dtype))

        def call(node: Call, operands: list[str]) -> str:
            return self._value(C_TYPES[node.dtype], f"{node.function}({', '.join(operands)})")

        def channel(value: str) -> str:
            def leaf(node: Any) -> str:
                if isinstance(node, Number):
                    return f"numbers.{names[node.index]}"
                return node.text if isinstance(node, Constant) else value

            return written(step.term, leaf, call)

        self.values = [channel(self._element(value)) for value in self.values]

    def _element(self, value: str) -> str:
        """`value` as an element: what a kernel hands over may be packed."""
        return f"static_cast<In>({value})" if value.startswith("given") else value

    def _as_floats(self) -> list[str]:
        return [self._value("float", f"as_float({value})") for value in self.values]

    def _value(self, kind: str, text: str) -> str:
        name = f"v{len(self.statements)}"
        self.statements.append(f"const {kind} {name} = {text};")
        return name

    def body(self) -> ColorBody:
        """Text of the struct."""
        statements = [
            *self.statements,
            *(f"made[{c}] = {value};" for c, value in enumerate(self.values)),
        ]
        numbers = np.dtype(self.fields, align=True)
        text = _BODY.format(
            given=C_TYPES[self.source],
            made=C_TYPES[self.dtype],
            in_channels=self.in_channels,
            out_channels=len(self.values),
            fields="".join(f"\n    {_declared(name, kind)};" for name, kind in self.fields),
            statements="".join(f"\n    {line}" for line in statements),
        )
        made = len(self.values)
        return ColorBody(text, numbers, self.in_channels, made, self.source, self.dtype)


def _declared(name: str, kind: Any) -> str:
    if isinstance(kind, tuple):
        return f"{C_TYPES[np.dtype(kind[0])]} {name}[{kind[1][0]}]"
    return f"{C_TYPES[kind]} {name}"


def _float(value: np.floating[Any]) -> str:
    return f"{float(value)!r}f"
