"""Kernels that run on the CPU, on NumPy arrays, without holding the GIL for long."""
