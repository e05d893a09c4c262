"""When geometry of a whole batch is not to be had at once."""

from __future__ import annotations


class OneByOneError(Exception):
    """The samples of a batch have to be looked at one by one: some need it, or are bad."""
