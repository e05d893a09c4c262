"""Operators that reduce data along axes."""
