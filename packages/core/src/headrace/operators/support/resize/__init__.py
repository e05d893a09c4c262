"""Shared code of operators that resample images."""
