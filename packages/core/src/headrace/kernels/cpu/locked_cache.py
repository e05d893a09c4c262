"""Values made once, on first use, by whichever thread asks first."""

from __future__ import annotations

from collections.abc import Callable, Hashable
from functools import wraps
from threading import RLock
from typing import Any

from headrace._forking import no_fork


def locked_cache(make: Callable[..., Any]) -> Callable[..., Any]:
    """Like `functools.cache`, but threads that ask at the same time wait for one of them.

    Compiling a kernel takes seconds; workers that meet a new type of data all meet it at once.
    """
    made: dict[tuple[Hashable, ...], Any] = {}
    lock = RLock()

    @wraps(make)
    def get(*key: Hashable) -> Any:
        try:
            return made[key]
        except KeyError:
            with no_fork, lock:
                if key not in made:
                    made[key] = make(*key)
                return made[key]

    return get
