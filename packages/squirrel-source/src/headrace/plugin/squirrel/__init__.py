"""Squirrel data sets as sources of pipelines: read natively, and in parallel.

`source` makes a data set the source of ``fn.external_source``; importing this module adds the
reader ``fn.readers.squirrel``.
"""

from __future__ import annotations

from headrace.plugin.squirrel.reader import SquirrelReader
from headrace.plugin.squirrel.source import SquirrelSource, source
from headrace.plugin.squirrel.stream import plain

__all__ = ["SquirrelReader", "SquirrelSource", "plain", "source"]


def __dir__() -> list[str]:
    return [*__all__]
