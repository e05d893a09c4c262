"""Operators on audio."""
