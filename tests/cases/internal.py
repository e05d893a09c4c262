"""Cases of operators that users write and do not call by a name, and of functions of theirs."""

from __future__ import annotations

from typing import Any

import numpy as np

import headrace.experimental.dynamic as ndd
from tests.cases.case import Case
from tests.cases.data import images, matrices

_HWC, _PLAIN = (images(), "HWC"), (matrices(), "")
_WHOLE = [np.int32([[k, 7, -k], [3, k - 9, 40]]) for k in range(3)], ""
_FLAGS = [np.bool_(k % 2) for k in range(3)], ""
_LEVELS = [np.arange(256, dtype=np.uint8)[::-1, None, None].copy() for _ in range(3)], ""
_LEVEL = [np.uint8(60 * (k + 1)) for k in range(3)], ""
_FACTOR = [np.float32(0.5 * (k + 1)) for k in range(3)], ""


def _twice(data: Any) -> Any:
    return data * 2


def _same(data: Any) -> Any:
    return data


def _dlpack_same(batch: Any) -> Any:
    return batch


def _items(data: Any) -> Any:
    """What is indexed by sample."""
    return data.slice if isinstance(data, ndd.Batch) else data


def _branches(fn: Any, data: Any, flag: Any) -> Any:
    yes, no = fn._conditional.split(data, predicate=flag)
    return fn._conditional.merge(yes * 2, no + 1, predicate=flag)


def _equal_branches(fn: Any, data: Any, flag: Any, same: Any) -> Any:
    yes, no = fn._conditional.split(data, predicate=flag)
    return fn._conditional.merge(yes * 2, no + 1, predicate=same)


def _written(name: str, note: str, function: Any, *inputs: Any, **more: Any) -> Case:
    return Case(name, list(inputs), written=function, note=note, dali=False, **more)


INTERNAL = [
    _written("_arithmetic_generic_op", "x*2+1", lambda fn, x: x * 2 + 1, _HWC),
    _written("_arithmetic_generic_op", "x/3-x", lambda fn, x: x / 3 - x, _PLAIN),
    _written("_arithmetic_generic_op", "x//7", lambda fn, x: x // 7, _WHOLE),
    _written("_arithmetic_generic_op", "x&6|1", lambda fn, x: x & 6 | 1, _WHOLE),
    _written("_arithmetic_generic_op", "x>y", lambda fn, x, y: x > y, _WHOLE, _FACTOR),
    _written("_arithmetic_generic_op", "x*y", lambda fn, x, y: x * y, _HWC, _FACTOR),
    _written("_tensor_subscript", "x[1:,::2]", lambda fn, x: _items(x)[1:, ::2], _HWC),
    _written("_tensor_subscript", "x[0]", lambda fn, x: _items(x)[0], _PLAIN),
    _written("_tensor_subscript", "x[-1,1:3]", lambda fn, x: _items(x)[-1, 1:3], _HWC),
    _written("_subscript_dim_check", "x[:,:]", lambda fn, x: _items(x)[:, :], _PLAIN),
    _written("_copy_to_gpu", "x.gpu()", lambda fn, x: x.gpu(), _HWC),
    _written("_copy_to_cpu", "x.gpu().cpu()", lambda fn, x: x.gpu().cpu(), _HWC),
    _written("external_source", "x", lambda fn, x: x, _HWC),
    _written(
        "_conditional.merge",
        "",
        lambda fn, x, y, flag: fn._conditional.merge(x, y, predicate=flag),
        *(_PLAIN, _PLAIN, _FLAGS),
        dynamic=False,
    ),
    _written("_conditional.merge", "of parts", _branches, _PLAIN, _FLAGS, dynamic=False, gpu=False),
    _written(
        "_validate_merge",
        "",
        _equal_branches,
        *(_PLAIN, _FLAGS, _FLAGS),
        dynamic=False,
        gpu=False,
    ),
    Case("_conditional.not_", [_FLAGS], dali=False),
    Case(
        "_conditional.validate_logical",
        [_FLAGS],
        {"expression_name": "and", "expression_side": "left"},
        dali=False,
    ),
    Case("_constant_tensor", [], {"value": np.float32([1, 2.5])}, dali=False),
    Case("constant", [], {"fdata": [1.0, 2.5, 3.0], "shape": [3]}, dali=False),
    Case("constant", [], {"idata": [1, 2], "dtype": "INT16"}, dali=False),
    Case("_auto_contrast", [_HWC], dali=False),
    Case("_contrast", [_HWC, _FACTOR], dali=False),
    Case("_map_levels", [_HWC, _LEVELS], dali=False),
    Case("_solarize", [_HWC, _LEVEL], dali=False),
    Case("_solarize_add", [_HWC, _LEVEL], dali=False),
    Case("python_function", [_PLAIN], {"function": _twice}, dali=False),
    Case("python_function", [_PLAIN], {"function": _same, "batch_processing": True}, dali=False),
    Case("dl_tensor_python_function", [_PLAIN], {"function": _dlpack_same}, dali=False, gpu=False),
]
