"""Arithmetic, comparison, bitwise and mathematical expressions of tensors and numbers."""
