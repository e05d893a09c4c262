"""Operators of the generic family."""
