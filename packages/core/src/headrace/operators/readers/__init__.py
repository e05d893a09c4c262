"""Operators of the readers family."""
