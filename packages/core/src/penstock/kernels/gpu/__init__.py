"""Kernels that run on the GPU: a mirror of `penstock.kernels.cpu`, to come with the GPU backend."""
