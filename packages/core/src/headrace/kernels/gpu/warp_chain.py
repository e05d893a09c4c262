"""Functions of elements that a warp applies on the way: a term as CUDA text.

Generated is the struct `Chain` of ``cuda/warp_placed.cuh``.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache

import numpy as np

from headrace.kernels.gpu.pointwise_terms import Call, Constant, Number, Source, Term, nodes
from headrace.kernels.gpu.program import C_TYPES, program

_CHAIN = """
struct Chain {{
  using Type = {out};{numbers}

  __device__ __forceinline__ explicit Chain(const uint8*{taken} {{}}
  __device__ __forceinline__ {out} operator()({source} source0) const {{{statements}
    return {result};
  }}
}};
"""
_NUMBERS = """
  struct Numbers {{{fields}
  }};
  Numbers numbers;"""
_TAKEN = " row)\n      : numbers(*reinterpret_cast<const Numbers*>(row))"


@dataclass(frozen=True, slots=True, eq=False)
class ChainKernel:
    """A kernel of a program that ends with a generated struct.

    Attributes
    ----------
    file
        The program without it.
    text
        The struct.
    name
        Name expression.
    """

    file: str
    text: str
    name: str

    def source(self) -> str:
        """Text of the program."""
        return program(self.file) + self.text


@dataclass(frozen=True, slots=True, eq=False)
class WarpChain:
    """A term of one source.

    Attributes
    ----------
    text
        The struct.
    row
        Type of what a sample needs of numbers.
    """

    text: str
    row: np.dtype


@lru_cache(maxsize=1024)
def chain_of(term: Term, source: np.dtype) -> WarpChain:
    """`term`, which reads source 0, of this type, and any numbers, and has no faults."""
    names: dict[int, str] = {}
    statements: list[str] = []
    numbers: dict[int, np.dtype] = {}
    for node in nodes(term):
        if isinstance(node, Source):
            names[id(node)] = "source0"
        elif isinstance(node, Number):
            numbers[node.index] = node.dtype
            names[id(node)] = f"numbers.number{node.index}"
        elif isinstance(node, Constant):
            names[id(node)] = node.text
        else:
            assert isinstance(node, Call), "faults are told of elsewhere"
            name = names[id(node)] = f"t{len(statements)}"
            operands = ", ".join(names[id(o)] for o in node.operands)
            statements.append(f"const {C_TYPES[node.dtype]} {name} = {node.function}({operands});")
    fields = [(f"number{k}", numbers[k]) for k in sorted(numbers)]
    declared = "".join(f"\n    {C_TYPES[kind]} {name};" for name, kind in fields)
    text = _CHAIN.format(
        out=C_TYPES[term.dtype],
        source=C_TYPES[source],
        numbers=_NUMBERS.format(fields=declared) if fields else "",
        taken=_TAKEN if fields else ")",
        statements="".join(f"\n    {s}" for s in statements),
        result=names[id(term)],
    )
    return WarpChain(text, np.dtype(fields, align=True))


@lru_cache(maxsize=1024)
def chain_kernel(file: str, name: str, term: Term, source: np.dtype) -> ChainKernel:
    """The kernel of `file` whose name expression ends with a `Chain` for `term`."""
    return ChainKernel(file, chain_of(term, source).text, name)
