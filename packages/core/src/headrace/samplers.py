"""Samplers for `sampler=` of every reader: in which order samples come, and which of them."""

from __future__ import annotations

from headrace.operators.readers.samplers import Balanced, EpochSampler, Shuffled, Weighted

__all__ = ["Balanced", "EpochSampler", "Shuffled", "Weighted"]
