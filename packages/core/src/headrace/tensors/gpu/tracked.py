"""Arrays whose elements are other ones in the next iteration: shapes and addresses of samples.

What becomes of them is noted as calls (`headrace.tensors.gpu.traced`), which a replay makes anew: a
function of such an array is one, too. Where a program reads an element (for a branch, a size, a
kernel) the note says which it was, and a replay is for iterations in which it is the same. There is
no other way to the elements: what NumPy or compiled code would read unnoticed raises.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
from numpy.lib.mixins import NDArrayOperatorsMixin

from headrace.tensors.gpu.traced import HasRaw, UntrackedError, note_call, raw_of, refuse_silence

_OF_LAYOUT: frozenset[Any] = frozenset(
    {np.shape, np.ndim, np.size, np.result_type, np.may_share_memory, np.shares_memory}
)
"""Functions of what does not change: shapes, types and places of arrays."""


class Tracked(HasRaw, NDArrayOperatorsMixin):
    """An array, `raw`, whose elements are noted as they are used."""

    __slots__ = ()
    __hash__ = None  # type: ignore[assignment]

    def __init__(self, raw: np.ndarray) -> None:
        self.raw = raw

    shape = property(lambda self: self.raw.shape)
    ndim = property(lambda self: self.raw.ndim)
    size = property(lambda self: self.raw.size)
    dtype = property(lambda self: self.raw.dtype)
    strides = property(lambda self: self.raw.strides)
    itemsize = property(lambda self: self.raw.itemsize)
    nbytes = property(lambda self: self.raw.nbytes)
    flags = property(lambda self: self.raw.flags)
    T = property(lambda self: Tracked(self.raw.T))

    def __len__(self) -> int:
        return len(self.raw)

    def __iter__(self) -> Iterator[Tracked]:
        return (self[k] for k in range(len(self)))

    def __array__(self, *_: Any, **__: Any) -> np.ndarray:
        raise UntrackedError("elements would be read unnoticed")

    def __array_ufunc__(self, ufunc: Any, method: str, *inputs: Any, **kwargs: Any) -> Any:
        out = kwargs.pop("out", None)
        function = ufunc if method == "__call__" else getattr(ufunc, method)
        if out is None:
            return _applied(function, inputs, kwargs)
        if len(out) > 1 or not isinstance(out[0], Tracked):
            raise UntrackedError("elements would be written to an array that is not tracked")
        _written(function, inputs, {**kwargs, "out": out[0]}, out[0])
        return out[0]

    def __array_function__(self, function: Any, types: Any, args: Any, kwargs: Any) -> Any:
        if function in _OF_LAYOUT:
            return function(*map(raw_of, args), **kwargs)
        if function is np.empty_like:
            return Tracked(np.empty_like(raw_of(args[0]), *args[1:], **kwargs))
        if function is np.copyto:
            if not isinstance(args[0], Tracked):
                raise UntrackedError("elements would be written to an array that is not tracked")
            return _written(function, args, kwargs, args[0])
        if "out" in kwargs:
            raise UntrackedError(f"`{function.__name__}` writes to `out`")
        return _applied(function, args, kwargs)

    def __getitem__(self, key: Any) -> Tracked:
        if _is_basic(key):
            parts = _as_tuple(key)
            if not any(each is Ellipsis or isinstance(each, (str, list)) for each in parts):
                key = (*parts, Ellipsis)  # with it a single element is a view, too
            return Tracked(self.raw[key])
        return _applied(operator.getitem, (self, key), {})  # type: ignore[no-any-return]

    def __setitem__(self, key: Any, value: Any) -> None:
        if not _is_basic(key):
            raise UntrackedError("elements are written by their numbers")
        view = self[key]
        _written(operator.setitem, (view, Ellipsis, value), {}, view)

    def __bool__(self) -> bool:
        return _told(bool, self)  # type: ignore[no-any-return]

    def __int__(self) -> int:
        return _told(int, self)  # type: ignore[no-any-return]

    def __index__(self) -> int:
        return _told(operator.index, self)  # type: ignore[no-any-return]

    def __float__(self) -> float:
        return _told(float, self)  # type: ignore[no-any-return]

    def tolist(self) -> Any:
        """The elements, which are those of all iterations from here on."""
        return _told(np.ndarray.tolist, self)

    def item(self) -> Any:
        """The only element, likewise."""
        return _told(np.ndarray.item, self)

    def tobytes(self) -> bytes:
        """The bytes, likewise."""
        return _told(np.ndarray.tobytes, self)  # type: ignore[no-any-return]

    def all(self, axis: Any = None) -> Any:
        """Tell whether all elements are true; along an axis, an array that is tracked."""
        return _applied(np.ndarray.all, (self, axis), {}) if axis is not None else _told(_all, self)

    def any(self, axis: Any = None) -> Any:
        """Tell whether any is, likewise."""
        return _applied(np.ndarray.any, (self, axis), {}) if axis is not None else _told(_any, self)

    def view(self, dtype: Any) -> Tracked:
        """The memory as elements of another type."""
        return Tracked(self.raw.view(dtype))

    def copy(self) -> Tracked:
        """A copy, C-contiguous."""
        made = Tracked(np.empty(self.shape, self.dtype))
        _written(np.copyto, (made, self), {}, made)
        return made

    def astype(self, dtype: Any, *, copy: bool = True) -> Tracked:
        """The elements, converted."""
        if self.raw.dtype == dtype and not copy:
            return self
        return _applied(np.ndarray.astype, (self, np.dtype(dtype)), {})  # type: ignore[no-any-return]


def _method(name: str) -> Callable[..., Any]:
    function = getattr(np.ndarray, name)

    def method(self: Tracked, *args: Any, **kwargs: Any) -> Any:
        return _applied(function, (self, *args), kwargs)

    method.__name__ = name
    return method


for _name in (
    *("argmax", "argmin", "cumsum", "max", "min", "prod", "ravel", "repeat"),
    *("reshape", "sum", "take", "transpose"),
):
    setattr(Tracked, _name, _method(_name))


def empty_beside(shape: Any, dtype: Any, *arrays: Any) -> np.ndarray:
    """An uninitialised array for what is made of `arrays`: tracked if one of them is."""
    made = np.empty(shape, dtype)
    tracked: Any = Tracked(made)
    return tracked if any(isinstance(each, Tracked) for each in arrays) else made


def _all(array: np.ndarray) -> bool:
    return bool(array.all())


def _any(array: np.ndarray) -> bool:
    return bool(array.any())


def _as_tuple(key: Any) -> tuple[Any, ...]:
    return key if isinstance(key, tuple) else (key,)


def _is_basic(key: Any) -> bool:
    """True if elements of an array chosen so are a view of it."""
    if isinstance(key, list):
        return bool(key) and all(isinstance(each, str) for each in key)
    return all(
        each is None or each is Ellipsis or isinstance(each, (int, np.integer, slice, str))
        for each in _as_tuple(key)
        if not isinstance(each, bool)
    ) and not any(isinstance(each, bool) for each in _as_tuple(key))


def _plain(value: Any) -> Any:
    """A value with arrays in place of what stands for them."""
    if isinstance(value, (tuple, list)):
        return type(value)(map(_plain, value))
    return raw_of(value)


def _arrays(value: Any) -> list[np.ndarray]:
    if isinstance(value, (tuple, list)):
        return [array for each in value for array in _arrays(each)]
    return [value] if isinstance(value, np.ndarray) else []


def _told(function: Callable[[Any], Any], array: Tracked) -> Any:
    """Tell what a program reads of an array: a replay is for iterations in which it is the same."""
    found = function(array.raw)
    note_call(function, (array.raw,), found)
    return found


def _written(function: Any, args: Any, kwargs: dict[str, Any], target: Tracked) -> None:
    """Call what writes to a tracked array, and note it."""
    args, kwargs = _plain(tuple(args)), {name: _plain(value) for name, value in kwargs.items()}

    refuse_silence()

    def again(*_: Any) -> None:
        function(*args, **kwargs)

    again()
    note_call(again, (target.raw, *_arrays(args), *_arrays(tuple(kwargs.values()))), None)


def _applied(function: Any, args: Any, kwargs: dict[str, Any]) -> Any:
    """A function of tracked arrays: a tracked array, or a value that the program reads."""
    args, kwargs = _plain(tuple(args)), {name: _plain(value) for name, value in kwargs.items()}
    refuse_silence()
    found = function(*args, **kwargs)
    arrays = _arrays(args) + _arrays(tuple(kwargs.values()))
    if isinstance(found, (bool, int, float)):
        note_call(lambda *_: function(*args, **kwargs), tuple(arrays), found)
        return found
    if not isinstance(found, (np.ndarray, np.generic)):
        raise UntrackedError(f"the results of `{function}` are not tracked")
    if isinstance(found, np.ndarray) and any(np.may_share_memory(found, each) for each in arrays):
        return Tracked(found)  # a view
    target = np.array(found)

    def again(*_: Any) -> bool:
        made = function(*args, **kwargs)
        if made.shape != target.shape:
            return False
        target[...] = made
        return True

    note_call(again, (target, *arrays), True)
    return Tracked(target)
