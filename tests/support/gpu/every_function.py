"""Device functions of elements, many of them compiled as one kernel, run on arrays."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from headrace.kernels.gpu.program import C_TYPES, program
from tests.support.gpu.session import gpu_session

_TEXT = """
__global__ void every(
    int32 which, const char* a, const char* b, const char* c, char* out, int32 size,
    int32* faults) {{
  const int32 at = blockIdx.x * blockDim.x + threadIdx.x;
  if (at >= size) return;
  switch (which) {{
{cases}
  }}
}}
"""
_CASE = "    case {number}: reinterpret_cast<{result}*>(out)[at] = {function}({operands}); break;"


class Function(NamedTuple):
    """One function of elements."""

    text: str
    """How it is called, without arguments."""
    types: tuple[np.dtype, ...]
    """Of its one to three arguments."""
    result: np.dtype
    faults: bool = False
    """Whether it has a `Fault` as its last argument."""


class EveryFunction:
    """Functions out of a file of the package's kernels."""

    def __init__(self, file: str, functions: Sequence[Function]) -> None:
        self.functions = list(functions)
        cases = "\n".join(map(_case, range(len(self.functions)), self.functions))
        self._source = program(file) + _TEXT.format(cases=cases)

    name = "every"

    def source(self) -> str:
        """Text of the program."""
        return self._source

    def __call__(self, function: Function, *operands: np.ndarray) -> tuple[np.ndarray, int | None]:
        """What the function makes of arrays ``(n,)``, and the first place that it reports."""
        (size,) = operands[0].shape
        assert tuple(x.dtype for x in operands) == function.types
        with gpu_session(scattered=False) as session:
            batches = [session.upload([x]) for x in operands]
            out = session.queue.empty((size,), function.result, 1)
            faults = session.upload([np.full(1, 0x7F7F7F7F, np.int32)])
            addresses = [b.pointers[0] for b in batches] + [np.uint64(0)] * (3 - len(batches))
            session.queue.launch(
                self,
                (-(-size // 128), 1, 1),
                (128, 1, 1),
                np.int32(self.functions.index(function)),
                *addresses,
                out.pointers[0],
                np.int32(size),
                faults.pointers[0],
            )
            found = int(session.download(faults)[0][0])
            return session.download(out)[0], None if found == 0x7F7F7F7F else found


def _case(number: int, function: Function) -> str:
    operands = [
        f"reinterpret_cast<const {C_TYPES[t]}*>({name})[at]"
        for t, name in zip(function.types, "abc", strict=False)
    ]
    if function.faults:
        operands.append("Fault{faults, at}")
    return _CASE.format(
        number=number,
        result=C_TYPES[function.result],
        function=function.text,
        operands=", ".join(operands),
    )
