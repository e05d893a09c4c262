"""Imports of what is not installed, or is to come."""

from __future__ import annotations

import importlib
import importlib.util
import sys

import pytest

import headrace.fn
import headrace.plugin
from headrace import errors
from headrace.dali_names import DALI_CLASSES
from headrace.to_come import DOCUMENTS, FORMER, NO_COUNTERPART, PLUGINS, PRIVATE, REPOSITORY
from tests.e2e.support import REPOSITORY as ROOT

PAGE = f"{DOCUMENTS}/to-come.md"


def fails(statement):
    with pytest.raises(ImportError) as caught:
        exec(statement, {})
    return caught.value


def both_forms(name):
    """Errors of ``import a.b`` and of ``from a import b``."""
    package, _, last = name.rpartition(".")
    return fails(f"import {name}"), fails(f"from {package} import {last}")


@pytest.mark.parametrize("name", NO_COUNTERPART)
def test_modules_without_a_counterpart(name):
    for error in both_forms(name):
        assert type(error) is errors.MissingModuleError
        assert f"`{name}`" in str(error)
        assert NO_COUNTERPART[name] in str(error)
        assert PAGE in str(error)


@pytest.mark.parametrize("name", FORMER)
def test_modules_of_former_releases(name):
    for error in both_forms(name):
        assert type(error) is errors.MissingModuleError
        assert f"`{name}` is a module of former releases of DALI" in str(error)
        assert FORMER[name] in str(error)
    assert importlib.util.find_spec(name) is None


@pytest.mark.parametrize("name", PLUGINS)
def test_plugins_that_are_not_installed(name, monkeypatch):
    for loaded in [m for m in sys.modules if f"{m}.".startswith(f"{name}.")]:
        monkeypatch.delitem(sys.modules, loaded)
    package, _, last = name.rpartition(".")
    above = importlib.import_module(package)
    monkeypatch.delattr(above, last, raising=False)
    monkeypatch.setattr(above, "__path__", [p for p in above.__path__ if "core" in p])
    importlib.invalidate_caches()
    for error in both_forms(name):
        assert isinstance(error, errors.PluginNotInstalledError)
        assert isinstance(error, errors.MissingDependencyError)
        assert isinstance(error, ModuleNotFoundError)
        assert f"Run `pip install {PLUGINS[name][0]}`" in str(error)
        assert f"{REPOSITORY}#install" in str(error)
    assert importlib.util.find_spec(name) is None


# Ray is in an environment of its own.
@pytest.mark.parametrize("name", [name for name in PLUGINS if name != "headrace.plugin.ray"])
def test_plugins_that_are_installed_are_found_first(name):
    spec = importlib.util.find_spec(name)
    assert spec is not None
    assert spec.origin.endswith("__init__.py")


def test_private_modules_have_no_names():
    for name in sorted(PRIVATE):
        module = importlib.import_module(name)
        with pytest.raises(errors.PrivateNameError, match=f"`{name}.thing` has no counterpart"):
            module.thing  # noqa: B018
        assert not hasattr(module, "thing")
        assert "cannot import name" in str(fails(f"from {name} import thing"))
    assert importlib.import_module("headrace")._utils is sys.modules["headrace._utils"]


def test_modules_of_operators_to_come():
    modules = {f"headrace.fn.{name.rpartition('.')[0]}" for name in DALI_CLASSES if "." in name}
    for name in sorted(modules - sys.modules.keys()):
        for error in both_forms(name):
            assert isinstance(error, errors.ModuleNotReleasedError)
            assert f"{DOCUMENTS}/support-matrix.md" in str(error)


def test_the_name_is_that_of_the_module():
    found = fails("import headrace.plugin.paddle.fluid")
    assert found.name == "headrace.plugin.paddle"


def test_attributes_of_the_package():
    with pytest.raises(AttributeError, match="without a counterpart") as caught:
        headrace.reducers.Reducer  # noqa: B018
    assert PAGE in str(caught.value)
    assert not hasattr(headrace, "reducers")
    with pytest.raises(AttributeError, match="module 'headrace' has no attribute 'nonsense'"):
        headrace.nonsense  # noqa: B018


def test_a_program_can_ask():
    for name in NO_COUNTERPART:
        assert importlib.util.find_spec(name) is None


def test_other_names_are_python_s_own_errors():
    for error in both_forms("headrace.nonsense"):
        assert not isinstance(error, errors.HeadraceError)
    assert fails("import headrace.plugin.nonsense").name == "headrace.plugin.nonsense"
    assert not isinstance(fails("import nonsense"), errors.HeadraceError)


def test_addresses_are_of_pages_that_are_there():
    texts = [*NO_COUNTERPART.values(), PAGE]
    pages = {word.rstrip(".") for text in texts for word in text.split() if DOCUMENTS in word}
    assert len(pages) > 1
    for page in pages:
        assert (ROOT / "docs" / page.removeprefix(f"{DOCUMENTS}/")).is_file()
