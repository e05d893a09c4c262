"""Every public module of DALI can be imported from Headrace, or tells what to use instead."""

from __future__ import annotations

import importlib
import inspect
from pathlib import Path

import nvidia.dali
import nvidia.dali.math
import nvidia.dali.ops
import pytest

import headrace.fn
import headrace.math
import headrace.ops
from headrace.dali_names import DALI_CLASSES
from headrace.errors import HeadraceError
from headrace.to_come import FORMER, FORMER_OPERATORS, NO_COUNTERPART


def public_modules():
    """Names of DALI's modules, below ``nvidia.dali``."""
    root = Path(nvidia.dali.__file__).parent
    names = set()
    for file in root.rglob("*"):
        packages = [p for p in file.parents if root in p.parents]
        if file.suffix in (".py", ".so") and all((p / "__init__.py").exists() for p in packages):
            parts = [*file.parent.relative_to(root).parts, file.name.partition(".")[0]]
            names.add(".".join(part for part in parts if part != "__init__"))
    names.discard("")
    for operator in DALI_CLASSES:
        module = operator.rpartition(".")[0]
        while module:
            names |= {f"fn.{module}", f"ops.{module}"}
            module = module.rpartition(".")[0]
    return sorted(n for n in names if not any(part.startswith("_") for part in n.split(".")))


def test_every_module():
    silent, there = [], []
    for name in public_modules():
        try:
            importlib.import_module(f"headrace.{name}")
        except HeadraceError:
            continue
        except ImportError as error:
            silent.append((name, str(error)))
        else:
            there.append(name)
    assert silent == []
    assert {"fn", "fn.readers", "ops", "types", "plugin.pytorch", "plugin.jax"} <= set(there)


def test_the_table_names_nothing_that_dali_has_not():
    names = {f"headrace.{name}" for name in public_modules()}
    assert set(NO_COUNTERPART) <= names


def test_former_modules_are_not_in_dali():
    assert not set(FORMER) & {f"headrace.{name}" for name in public_modules()}


@pytest.mark.parametrize("name", ["HostDecoder", "nvJPEGDecoderRandomCrop", "CropCastPermute"])
def test_former_operators_have_a_replacement(name):
    assert not hasattr(nvidia.dali.ops, name)
    place = FORMER_OPERATORS[name.lower()]
    classes = {"decoders.image": "ops.decoders.Image"}
    for module, found in ((headrace.fn, f"fn.{place}"), (headrace.ops, classes.get(place, "ops."))):
        with pytest.raises(AttributeError, match="Former releases of DALI had it") as caught:
            getattr(module, name)
        assert f'in its place is "{found}' in str(caught.value)


def test_all_replacements_are_there():
    for place in FORMER_OPERATORS.values():
        function = headrace.fn
        for part in place.split("."):
            function = getattr(function, part)
        assert callable(function)


def test_modules_of_functions_have_no_others():
    """Programs list the operators by what the modules have."""

    def functions(module):
        return {n: f for n, f in vars(module).items() if inspect.isfunction(f) and n[0] != "_"}

    assert functions(headrace.math).keys() == functions(nvidia.dali.math).keys()
    assert headrace.fn.flip._schema_name == nvidia.dali.fn.flip._schema_name
    assert all(hasattr(f, "_schema_name") for f in functions(headrace.fn).values())
