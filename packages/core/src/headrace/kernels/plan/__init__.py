"""Compiled loops over samples that `plan` uses: geometry of several samples at once."""

from headrace._lazy_module import lazy_submodules

__getattr__ = lazy_submodules(__name__)
