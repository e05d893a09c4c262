"""Tests of the pool of workers, which all pipelines of a process share."""

from __future__ import annotations

import gc

import pytest


@pytest.fixture(autouse=True, scope="module")
def _no_older_pipelines(_older_objects_are_frozen) -> None:
    """Pipelines of earlier modules are gone, and their workers with them, in cycles or not."""
    gc.unfreeze()
    gc.collect()
    gc.freeze()
