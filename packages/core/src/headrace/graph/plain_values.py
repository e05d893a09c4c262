"""Values of operators' arguments as data that JSON keeps, and back, without running code.

Numbers, strings, `None` and booleans stay what they are, and tuples are lists. All else is a
dictionary with one entry, whose key says what it is.
"""

from __future__ import annotations

import base64
import math
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError
from headrace.operators.readers import samplers
from headrace.operators.readers.samplers import EpochSampler
from headrace.types import (
    DALIDataType,
    DALIImageType,
    DALIInterpType,
    OperatorConcurrency,
    StreamPolicy,
)
from headrace.types.features import Feature

_ENUMS = {
    cls.__name__: cls
    for cls in (DALIDataType, DALIImageType, DALIInterpType, OperatorConcurrency, StreamPolicy)
}
_KINDS = "biuf"
"""Kinds of elements that arrays may have."""


def to_plain(value: Any) -> Any:
    """`value` as data that JSON keeps."""
    kind = type(value)
    if value is None or kind in (bool, int, str):
        return value
    if kind is float:
        return value if math.isfinite(value) else {"float": repr(value)}
    if kind is tuple:
        return [to_plain(item) for item in value]
    if kind is list:
        return {"list": [to_plain(item) for item in value]}
    if kind is dict:
        return {"dict": [[to_plain(k), to_plain(v)] for k, v in value.items()]}
    if _ENUMS.get(kind.__name__) is kind:
        return {"enum": f"{kind.__name__}.{value.name}"}
    if isinstance(value, (np.ndarray, np.generic)) and value.dtype.kind in _KINDS:
        array = np.ascontiguousarray(value, value.dtype.newbyteorder("<"))
        content = {
            "dtype": array.dtype.str,
            "shape": list(value.shape),
            "base64": base64.b64encode(array.tobytes()).decode(),
        }
        return {"array" if isinstance(value, np.ndarray) else "scalar": content}
    if isinstance(value, EpochSampler):
        arguments = {name: to_plain(given) for name, given in vars(value).items()}
        return {"sampler": [kind.__name__, arguments]}
    if isinstance(value, Feature):
        return {"feature": [to_plain(part) for part in vars(value).values()]}
    what = "a function" if callable(value) else f"an object of type {kind.__qualname__}"
    raise ArgumentTypeError(f"{what} cannot be serialized")


def from_plain(plain: Any) -> Any:
    """The value that `to_plain` has made `plain` of."""
    if isinstance(plain, list):
        return tuple([from_plain(item) for item in plain])
    if not isinstance(plain, dict):
        return plain
    ((kind, content),) = plain.items()
    if kind == "float":
        return float(content)
    if kind == "list":
        return [from_plain(item) for item in content]
    if kind == "dict":
        return {from_plain(k): from_plain(v) for k, v in content}
    if kind == "enum":
        name, _, member = content.partition(".")
        return _ENUMS[name][member]
    if kind in ("array", "scalar"):
        dtype = np.dtype(content["dtype"])
        if dtype.kind not in _KINDS:
            raise ValueError(f"arrays have no elements of type {dtype}")
        data = base64.b64decode(content["base64"], validate=True)
        array = np.frombuffer(data, dtype).reshape(content["shape"]).astype(dtype.newbyteorder("="))
        return array if kind == "array" else array[()]
    if kind == "sampler":
        name, arguments = content
        return samplers.CLASSES[name](**{k: from_plain(v) for k, v in arguments.items()})
    if kind == "feature":
        return Feature(*[from_plain(part) for part in content])
    raise ValueError(f"there is no kind of value {kind!r}")
