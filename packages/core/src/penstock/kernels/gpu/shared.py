"""What Python and CUDA share: records and numbers, declared once, in Python.

A program says ``#include "bands:Sample"`` where it wants what `bands.py` declares by that name; the
text that the compiler sees is made here.
"""

from __future__ import annotations

import importlib
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

_PACKAGE = "penstock.kernels.gpu."
_TYPES: dict[np.dtype, str] = {
    np.dtype(np.uint32): "uint32",
    np.dtype(np.int32): "int32",
    np.dtype(np.uint64): "uint64",
    np.dtype(np.int64): "int64",
    np.dtype(np.float32): "float",
    np.dtype(np.float64): "double",
}


class _Shared(NamedTuple):
    text: str
    needs: tuple[str, ...]
    """What has to stand before it, as ``module:name``."""


_shared: dict[str, _Shared] = {}
"""By ``module:name``."""
_records: dict[int, tuple[str, str, np.dtype]] = {}
"""Where a record is declared, and its name in C++, by the ``id`` of its type."""


def record(
    module: str, name: str, fields: Sequence[tuple[Any, ...]], base: np.dtype | None = None
) -> np.dtype:
    """Declare a record that a kernel reads.

    Parameters
    ----------
    module
        ``__name__`` of who declares it.
    name
        That of the struct in C++.
    fields
        As for a structured type: names, types and, of arrays, shapes. The type of a pointer is
        written in C++, as ``"const char*"``.
    base
        A record that it begins with, and derives from in C++.

    Returns
    -------
    np.dtype
        The structured type, laid out as C++ does it.
    """
    of_numpy = [] if base is None else _fields_of(base)
    lines: list[str] = []
    needs: list[str] = []
    derived = ""
    if base is not None:
        place, written, _ = _records[id(base)]
        needs.append(place)
        derived = f" : {written}"
    for field, kind, *shape in fields:
        own: Any = kind
        if isinstance(kind, str):
            own, written = np.uint64, kind
        elif id(kind) in _records:
            place, written, _ = _records[id(kind)]
            needs.append(place)
        else:
            written = _TYPES[np.dtype(kind)]
        extents = np.dtype((own, shape[0])).shape if shape else ()
        of_numpy.append((field, own, *shape))
        lines.append(f"  {written} {field}{''.join(f'[{extent}]' for extent in extents)};")
    dtype = np.dtype(of_numpy, align=True)
    text = "\n".join([f"struct {name}{derived} {{", *lines, "};"])
    text += f'\nstatic_assert(sizeof({name}) == {dtype.itemsize}, "as NumPy lays it out");'
    key = _declare(module, name, text, needs)
    _records[id(dtype)] = key, name, dtype
    return dtype


def followed(base: np.dtype, *fields: tuple[Any, ...]) -> np.dtype:
    """A record with further fields behind it, of which C++ knows nothing but where they begin."""
    return np.dtype([*_fields_of(base), *fields], align=True)


def _fields_of(base: np.dtype) -> list[tuple[Any, ...]]:
    assert base.names is not None
    return [(name, base[name].base, base[name].shape) for name in base.names]


def enumeration(module: str, name: str, members: Sequence[str]) -> range:
    """Declare an enumeration that a program uses, too; return its numbers, in this order."""
    _declare(module, name, f"enum {name} : int32 {{ {', '.join(members)} }};")
    return range(len(members))


def constant(module: str, name: str, value: int, kind: Any = np.int32) -> int:
    """Declare a number that a program uses, too, there as a constant of this type; return it."""
    written = _TYPES[np.dtype(kind)]
    _declare(module, name, f"[[maybe_unused]] constexpr {written} {name} = {value};")
    return value


def _declare(module: str, name: str, text: str, needs: Sequence[str] = ()) -> str:
    key = f"{module.removeprefix(_PACKAGE)}:{name}"
    if _shared.setdefault(key, _Shared(text, tuple(needs))).text != text:
        raise ValueError(f"{key} is declared twice")
    return key


def shared(key: str) -> _Shared:
    """What a module declares, as ``module:name``."""
    importlib.import_module(_PACKAGE + key.partition(":")[0])
    return _shared[key]
