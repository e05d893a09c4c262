"""The version shared, in lockstep, by every Headrace distribution."""

__version__ = "0.1.0"
