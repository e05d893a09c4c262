"""Expressions of tensors and numbers: types, shapes, and programs that compute them."""
