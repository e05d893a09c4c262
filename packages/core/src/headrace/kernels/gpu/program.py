"""The texts of the CUDA programs, and kernels named in them."""

from __future__ import annotations

import re
from functools import cache, lru_cache
from importlib.resources import files
from typing import NamedTuple

import numpy as np

from headrace.kernels.gpu.shared import shared

_INCLUDE = re.compile(r'^#include "(\w+\.cuh?|[\w.]+:\w+)"$', re.MULTILINE)
_FOLDER = files("headrace.kernels.gpu") / "cuda"

C_TYPES: dict[np.dtype, str] = {
    np.dtype(np.bool_): "bool",
    np.dtype(np.uint8): "unsigned char",
    np.dtype(np.int8): "signed char",
    np.dtype(np.uint16): "unsigned short",
    np.dtype(np.int16): "short",
    np.dtype(np.uint32): "unsigned int",
    np.dtype(np.int32): "int",
    np.dtype(np.uint64): "unsigned long long",
    np.dtype(np.int64): "long long",
    np.dtype(np.float16): "half",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
}
"""Template arguments for element types."""


@cache
def program(file: str) -> str:
    """Text of the program ``cuda/<file>``, with what it includes put in, once each.

    That is files from there, and what Python shares (see `headrace.kernels.gpu.shared`).

    The compiler sees one text, so that its cache on disk notices every change.
    """
    seen: set[str] = set()

    def expanded(name: str) -> str:
        def put_in(found: re.Match[str]) -> str:
            included = found[1]
            if included in seen:
                return ""
            seen.add(included)
            return expanded(included)

        if ":" in name:
            found = shared(name)
            before = [expanded(need) for need in found.needs if need not in seen]
            seen.update(found.needs)
            return "\n".join([*before, found.text])
        return _INCLUDE.sub(put_in, (_FOLDER / name).read_text(encoding="utf-8"))

    return expanded(file)


class Kernel(NamedTuple):
    """A kernel of one of the programs, or of one that goes on with a generated text.

    `name`: name expression: ``"fill<float>"``.
    """

    file: str
    name: str
    text: str = ""

    def source(self) -> str:
        """Text of the program."""
        return program(self.file) + self.text


class CudaKernel(NamedTuple):
    """A kernel of a program that a user has written.

    Parameters
    ----------
    name
        Name expression: ``"adjust"``, or of a template ``"adjust<float>"``.
    text
        The program, in CUDA C++: what is in a ``.cu`` file. The library's ``common.cuh`` stands
        before it, with ``uint8`` ... ``int64`` and ``saturated<T>``.
    """

    name: str
    text: str

    def source(self) -> str:
        """Text that is compiled."""
        return f"{program('common.cuh')}\n{self.text}"


@lru_cache(maxsize=4096)
def kernel(file: str, function: str, *arguments: np.dtype | int | bool | str) -> Kernel:
    """The kernel `function`, a template of these types and numbers, of a program."""
    if not arguments:
        return Kernel(file, function)
    return Kernel(file, f"{function}<{', '.join(map(_argument, arguments))}>")


def _argument(value: np.dtype | int | bool | str) -> str:
    if isinstance(value, np.dtype):
        return C_TYPES[value]
    if isinstance(value, bool):
        return "true" if value else "false"
    return str(value)
