"""Kernels that run on the GPU: a mirror of `headrace.kernels.cpu`.

The programs are CUDA C++ in ``cuda/``, one file for a family. The modules here compute what a
launch needs (descriptors of the samples, the grid) with NumPy, for a whole batch at once, and queue
it. They know batches and numbers; operators and their arguments they do not know.
"""

from headrace._lazy_module import lazy_submodules

__getattr__ = lazy_submodules(__name__)
