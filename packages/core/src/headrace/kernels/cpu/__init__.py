"""Kernels that run on the CPU, on NumPy arrays, without holding the GIL for long."""

from headrace._lazy_module import lazy_submodules

__getattr__ = lazy_submodules(__name__)
