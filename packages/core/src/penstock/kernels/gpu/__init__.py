"""Kernels that run on the GPU; they mirror `penstock.kernels.cpu` file by file and arrive with the GPU backend."""
