"""Shared code of operators that draw random tensors."""
