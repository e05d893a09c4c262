"""Operators that read files named by data."""
