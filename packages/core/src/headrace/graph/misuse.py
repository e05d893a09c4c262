"""Error messages for a node that is used as if it were its values."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np

from headrace.errors import HeadraceError
from headrace.operators.support.arithmetic.operations import OPERATIONS
from headrace.operators.support.registry import listed

_IN_NUMPY = {
    "absolute": "abs",
    "amax": "max",
    "astype": "cast",
    "amin": "min",
    "concatenate": "cat",
    "flatten": "reshape",
    "fliplr": "flip",
    "flipud": "flip",
    "maximum": "max",
    "minimum": "min",
    "moveaxis": "transpose",
    "permute": "transpose",
    "power": "pow",
    "ravel": "reshape",
    "rot90": "rotate",
    "std": "std_dev",
    "swapaxes": "transpose",
    "unsqueeze": "expand_dims",
    "var": "variance",
    "view": "reshape",
}
_CALLED_BY_ARRAYS: dict[str, tuple[Callable[[Any, Any], Any], str]] = {
    "add": (operator.add, "__radd__"),
    "subtract": (operator.sub, "__rsub__"),
    "multiply": (operator.mul, "__rmul__"),
    "divide": (operator.truediv, "__rtruediv__"),
    "floor_divide": (operator.floordiv, "__rfloordiv__"),
    "remainder": (operator.mod, "__rmod__"),
    "power": (operator.pow, "__rpow__"),
    "bitwise_and": (operator.and_, "__rand__"),
    "bitwise_or": (operator.or_, "__ror__"),
    "bitwise_xor": (operator.xor, "__rxor__"),
    "left_shift": (operator.lshift, "__rlshift__"),
    "right_shift": (operator.rshift, "__rrshift__"),
    "equal": (operator.eq, "__eq__"),
    "not_equal": (operator.ne, "__ne__"),
    "less": (operator.lt, "__gt__"),
    "less_equal": (operator.le, "__ge__"),
    "greater": (operator.gt, "__lt__"),
    "greater_equal": (operator.ge, "__le__"),
}
"""Of the functions of NumPy that stand for ``array + node`` and the like: what a node on the left
does, and the method of one on the right."""
_FOREIGN = ("cv2", "PIL", "torch", "torchvision", "numpy")
_NO_VALUE = (
    "has no value while the pipeline is being defined: use operators (`fn.*`, `math.*`{}), or let "
    "`fn.python_function` call a function of another library with the values of each sample."
)


def array_arithmetic(name: str, left: Any, right: Any, node: type) -> Any:
    """Return ``array + node`` and the like; `NotImplemented` if `name` is no such function."""
    forward, reflected = _CALLED_BY_ARRAYS.get(name, (None, ""))
    if forward is None:
        return NotImplemented
    if isinstance(left, node):
        return forward(left, right)
    method = getattr(right, reflected, None)  # a few operators have no node on the right
    if np.ndim(left) == 0:  # Python's number, as in DALI, where NumPy hands the node that
        left = left.item()
    return NotImplemented if method is None else method(left)


def instead_of(function: str) -> str:
    """Return the operator that replaces a `function` of NumPy, for the message; "" if none does."""
    name = _IN_NUMPY.get(function, function)
    operators = {schema.name for schema in listed()}
    for path in (name, f"reductions.{name}"):
        if path in operators:
            return f", here `fn.{path}`"
    return f", here `math.{name}`" if name in OPERATIONS else ""


def explain(error: BaseException | None) -> None:
    """Note on an `error` of a definition that a node was taken for values, where that shows."""
    if not isinstance(error, Exception) or isinstance(error, HeadraceError):
        return
    text = str(error)
    if text == "'method' object is not subscriptable":
        error.add_note("Of a DataNode, `shape` is called: `images.shape()[0]` is a node, too.")
    if "DataNode" not in text and type(error).__module__.partition(".")[0] not in _FOREIGN:
        return
    if "iterable" in text:
        error.add_note(
            "A DataNode is one output of an operator, and stands for a whole batch: it is neither "
            "unpacked nor looped over. Most operators have one output, as in "
            "`images = fn.decoders.image(...)`, and `fn.external_source` has more with "
            "`num_outputs=`; what is done to a node is done to each sample."
        )
    else:
        name = getattr(error, "name", None)
        note = _NO_VALUE.format(instead_of(name) if isinstance(name, str) else "")
        error.add_note(f"A DataNode, which operators return, {note}")
