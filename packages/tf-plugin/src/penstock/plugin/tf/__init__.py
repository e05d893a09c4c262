"""TensorFlow datasets: announced here, to come in a later version."""

from __future__ import annotations

from penstock.to_come import missing_module

_error = missing_module(__name__)
assert _error is not None
_error.name = None  # `from penstock.plugin import tf` would drop an error of that name
raise _error
