"""States of users' sources: what of them a checkpoint can hold."""

from __future__ import annotations

import numbers
from typing import Any

from headrace.errors import UsageError


def keeps_state(source: Any) -> bool:
    """True if `source` can save and restore its position, as PyTorch's objects do."""
    if isinstance(source, type):
        return False
    return all(callable(getattr(source, name, None)) for name in ("state_dict", "load_state_dict"))


def plain(value: Any, source: Any) -> Any:
    """`value`, which the `state_dict` of `source` gave, in types that JSON keeps."""
    if value is None or isinstance(value, (bool, str)):
        return value
    if isinstance(value, numbers.Integral):
        return int(value)
    if isinstance(value, numbers.Real):
        return float(value)
    if isinstance(value, (list, tuple)):
        return [plain(item, source) for item in value]
    if isinstance(value, dict) and all(isinstance(key, str) for key in value):
        return {key: plain(item, source) for key, item in value.items()}
    what = f"a {type(value).__name__}"
    if isinstance(value, dict):
        what = "a dictionary with keys that are no text"
    raise UsageError(
        f"The `state_dict` of the source, a {type(source).__name__}, holds {what}. A checkpoint "
        "can hold numbers, text, None, lists, and dictionaries with text as keys; convert the rest."
    )
