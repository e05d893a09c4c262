"""Shared code of operators that normalise."""
