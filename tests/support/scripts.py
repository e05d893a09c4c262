"""Scripts of users, imported by the command line."""

import contextlib
import sys

import cloudpickle


@contextlib.contextmanager
def imports_forgotten(monkeypatch):
    """Forget modules that are imported meanwhile from folders of tests."""
    monkeypatch.setattr(sys, "path", [*sys.path])
    before = cloudpickle.list_registry_pickle_by_value()
    yield
    for name in set(cloudpickle.list_registry_pickle_by_value()) - set(before):
        cloudpickle.unregister_pickle_by_value(sys.modules.pop(name))
