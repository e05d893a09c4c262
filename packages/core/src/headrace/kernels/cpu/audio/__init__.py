"""Audio on the CPU: files, sampling rates, filters."""

from headrace._lazy_module import lazy_submodules

__getattr__ = lazy_submodules(__name__)
