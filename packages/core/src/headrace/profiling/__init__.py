"""Profile of a pipeline's time: recorded in columns, shown as a page and as a timeline.

Nothing here knows of pipelines: the engine records rows, and what is made of them follows from the
rows alone.
"""

from __future__ import annotations

from headrace.profiling.profile import Profile, profile
from headrace.profiling.stragglers import stragglers

__all__ = ["Profile", "profile", "stragglers"]


def __dir__() -> list[str]:
    return [*__all__]
