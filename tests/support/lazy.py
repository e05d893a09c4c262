"""Get at the lazy values that an operator hands to its consumer."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.operators.support.registry import find
from headrace.operators.support.schema import Spec
from headrace.types import DALIDataType
from tests.support.run_operator import PlainContext, call


def lazy(name: str, encoded: np.ndarray, **args: Any) -> Any:
    """The `LazyImage` of decoder `name` for one encoded sample; arguments are constants."""
    schema = find(name)
    values = {a.name: a.default for a in schema.args.values()}
    for key, value in args.items():
        values[key] = schema.args[key].type.constant(value)
    op = schema.cls(values, {})
    op.check_known(1)
    specs = op.infer(Spec(DALIDataType.UINT8, 1))
    return call(op, specs, PlainContext(op.args), encoded, lazy=True)
