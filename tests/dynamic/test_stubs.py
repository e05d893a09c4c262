"""What the stubs of dynamic mode say is what there is."""

import ast
import importlib
import inspect
from pathlib import Path

import pytest

import headrace.experimental.dynamic as ndd

FOLDER = Path(ndd.__file__).parent
STUBS = sorted(path.stem for path in FOLDER.glob("*.pyi"))


def defined(stub):
    names = {}
    for node in ast.parse((FOLDER / f"{stub}.pyi").read_text()).body:
        if isinstance(node, ast.ImportFrom):
            names |= {a.asname: None for a in node.names if a.asname and a.asname[0] != "_"}
        elif isinstance(node, ast.AnnAssign):
            names[node.target.id] = None
        else:
            names[node.name] = node
    return names


@pytest.mark.parametrize("stub", STUBS)
def test_everything_in_a_stub_is_there(stub):
    module = ndd if stub == "__init__" else importlib.import_module(f"{ndd.__name__}.{stub}")
    for name, node in defined(stub).items():
        found = getattr(module, name)
        if isinstance(node, ast.FunctionDef):
            parameters = list(inspect.signature(found).parameters)
            arguments = node.args
            written = [
                a.arg for a in (*arguments.posonlyargs, *arguments.args, *arguments.kwonlyargs)
            ]
            named = [p for p in parameters if p in written]
            assert named == [p for p in written if p in parameters]


def _is_ours(module, name):
    schema = getattr(getattr(module, name), "_schema", None)
    schema = getattr(schema, "_schema", schema)  # functions have DALI's view of it
    return schema is None or not schema.cls.__module__.startswith("headrace.plugin")


def test_everything_offered_is_in_a_stub():
    assert set(ndd.__all__) <= set(defined("__init__"))
    for stub in ("random", "readers", "decoders", "math"):
        module = getattr(ndd, stub)
        public = getattr(module, "__all__", None) or dir(module)
        # Readers of plugins, which other tests import, are in no stub of the core.
        assert {name for name in public if _is_ours(module, name)} <= set(defined(stub))
