"""Squirrel's own objects, recognised without importing Squirrel."""

from __future__ import annotations

import os
import sys
from collections.abc import Mapping
from typing import Any

from headrace.errors import ArgumentValueError
from headrace.plugin.squirrel.dataset import ShardFolder

_DRIVERS = {
    "MessagepackDriver": "squirrel.driver.msgpack",
    "JsonlDriver": "squirrel.driver.jsonl",
}
_OVERRIDABLE = ("get", "keys", "store", "get_iter")
"""Methods that a class derived from these must not override for its shards to be read
without it.
"""


def is_squirrel(value: Any) -> bool:
    """True if `value` is an object of Squirrel's, or of a class derived from one of its classes."""
    return any(cls.__module__.partition(".")[0] == "squirrel" for cls in type(value).__mro__)


def is_composable(value: Any) -> bool:
    """True if `value` is a Composable."""
    base = _known("squirrel.iterstream.base", "Composable")
    return base is not None and isinstance(value, base)


def driver_of(value: Any) -> Any:
    """The driver that `value`, a driver or a `CatalogSource`, stands for; `None` for others."""
    if not is_squirrel(value):
        return None
    if hasattr(value, "get_driver"):
        return value.get_driver()
    return value if hasattr(value, "get_iter") else None


def folder_of(value: Any, storage_options: Mapping[str, Any] | None = None) -> ShardFolder | None:
    """The folder of shards that `value` is, names, or reads; `None` where it does something
    else.
    """
    if isinstance(value, (str, os.PathLike)):
        return ShardFolder(value, storage_options)
    if storage_options is not None:
        raise ArgumentValueError(
            f"`storage_options` are for addresses; a {type(value).__name__} has its own."
        )
    driver = driver_of(value)
    return None if driver is None else folder_of_driver(driver)


def folder_of_driver(driver: Any) -> ShardFolder | None:
    """The folder of shards that `driver` reads; `None` if it does something else with them."""
    for name, module in _DRIVERS.items():
        base = _known(module, name)
        if base is not None and isinstance(driver, base):
            break
    else:
        return None
    if any(getattr(type(driver), name) is not getattr(base, name) for name in _OVERRIDABLE):
        return None
    if {"get", "keys", "get_iter"} & vars(driver).keys():
        return None  # replaced for this very object
    store = vars(driver).get("_store")
    if store is not None and type(store) is not _known(
        "squirrel.store.squirrel_store", "SquirrelStore"
    ):
        return None
    return ShardFolder(driver.url, driver.storage_options or None)


def _known(module: str, name: str) -> Any:
    """A class of Squirrel's, if it is imported: otherwise no object of it can exist."""
    return getattr(sys.modules.get(module), name, None)
