"""Records and constants shared by Python and CUDA, declared once, in Python.

A program says ``#include "bands:Sample"`` where it wants what `bands.py` declares by that name; the
text that the compiler sees is made here.
"""

from __future__ import annotations

import importlib
import re
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

_PACKAGE = "headrace.kernels.gpu."
_TYPES: dict[str, Any] = {
    "uint32": np.uint32,
    "int32": np.int32,
    "uint64": np.uint64,
    "int64": np.int64,
    "float": np.float32,
    "double": np.float64,
}
_COMMENT = re.compile(r"//.*")
_RECORD = re.compile(r"([\w.]+:\w+) {(.*)}", re.DOTALL)
_STATEMENT = re.compile(r"\s*((?:const )?[\w.:]+\*?) (\w+(?:\[\d+]|, \w+)*);\s*")
_NAME = re.compile(r"(\w+)((?:\[\d+])*)")


class _Shared(NamedTuple):
    text: str
    needs: tuple[str, ...]
    """Declarations that must come before it, as ``module:name``."""


_shared: dict[str, _Shared] = {}
"""By ``module:name``."""
_records: dict[str, np.dtype] = {}
"""Types of records, by ``module:name``."""


def record(text: str) -> np.dtype:
    """Declare a record that a kernel reads; return the type, laid out as C++ does it.

    `text`: as a struct in C++, with modules in front of records, as they are included:
    ``"bands:Sample { uint64 source, out; float matrix[2][3]; const char* data; }"``.
    """
    found = _RECORD.fullmatch(_COMMENT.sub("", text))
    if found is None or _STATEMENT.sub("", found[2]).strip():
        raise ValueError(f"This is no record: {text}")
    key, fields = found.groups()
    name = _name(key)
    of_numpy: list[tuple[Any, ...]] = []
    needs: list[str] = []
    lines: list[str] = []
    for kind, names in _STATEMENT.findall(fields):
        own: Any = np.uint64 if kind.endswith("*") else _TYPES.get(kind)
        if own is None:
            own = _record(kind)
            needs.append(kind)
        for field, extents in _NAME.findall(names):
            shape = tuple(map(int, re.findall(r"\d+", extents)))
            of_numpy.append((field, own, *[shape] * bool(shape)))
            lines.append(f"  {_name(kind)} {field}{extents};")
    dtype = np.dtype(of_numpy, align=True)
    text = "\n".join([f"struct {name} {{", *lines, "};"])
    text += f'\nstatic_assert(sizeof({name}) == {dtype.itemsize}, "as NumPy lays it out");'
    _declare(key, text, needs)
    _records[key] = dtype
    return dtype


def _record(key: str) -> np.dtype:
    shared(key)
    return _records[key]


def _name(key: str) -> str:
    """Name in C++ of ``module:name``."""
    return key.rpartition(":")[2]


def followed(base: np.dtype, *fields: tuple[Any, ...]) -> np.dtype:
    """A record with further fields after it, of which C++ knows nothing but where they begin."""
    return np.dtype([*_fields_of(base), *fields], align=True)


def _fields_of(base: np.dtype) -> list[tuple[Any, ...]]:
    assert base.names is not None
    return [(name, base[name].base, base[name].shape) for name in base.names]


def enumeration(module: str, name: str, members: Sequence[str]) -> range:
    """Declare an enumeration that a program uses, too; return its numbers, in this order."""
    _declare(_key(module, name), f"enum {name} : int32 {{ {', '.join(members)} }};")
    return range(len(members))


def numbered(module: str, name: str, members: Sequence[str]) -> dict[str, int]:
    """The number of each member of an `enumeration`, where they have names in capitals."""
    numbers = enumeration(module, name, [member.upper() for member in members])
    return dict(zip(members, numbers, strict=True))


def constant(module: str, name: str, value: int, kind: str = "int32") -> int:
    """Declare a number that a program uses, too, there as a constant of this type; return it."""
    _declare(_key(module, name), f"[[maybe_unused]] constexpr {kind} {name} = {value};")
    return value


def _key(module: str, name: str) -> str:
    return f"{module.removeprefix(_PACKAGE)}:{name}"


def _declare(key: str, text: str, needs: Sequence[str] = ()) -> None:
    if _shared.setdefault(key, _Shared(text, tuple(needs))).text != text:
        raise ValueError(f"{key} is declared twice")


def shared(key: str) -> _Shared:
    """Declaration ``module:name`` of a module."""
    importlib.import_module(_PACKAGE + key.partition(":")[0])
    return _shared[key]
