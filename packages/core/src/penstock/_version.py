"""The version shared, in lockstep, by every Penstock distribution."""

__version__ = "0.1.0"
