"""Operators are imported when they are first used; the manifest says from where."""

from __future__ import annotations

import json

import pytest

from headrace import fn
from headrace.errors import ArgumentValueError
from headrace.operators import Input, operator
from headrace.operators.support.manifest import OPERATORS
from headrace.operators.support.registry import all_schemas, find, listed
from tests.e2e.support import run_python

HEAD = """
import json, sys
def imported():
    return [m for m in sys.modules if m.startswith("headrace.operators.")]
def declared():
    from headrace.operators.support.registry import _schemas
    return sorted(_schemas)
"""


def after(program):
    return json.loads(run_python("-c", HEAD + program).stdout)


def test_one_operator_imports_no_other():
    before, names, modules = after(
        "from headrace import fn, ops\n"
        "dir(fn); dir(ops); dir(fn.readers)\n"
        "before = declared()\n"
        "fn.flip, ops.Flip\n"
        "print(json.dumps([before, declared(), imported()]))"
    )
    assert before == []
    assert names == ["flip"]
    families = {m.split(".")[2] for m in modules if m.count(".") == 3}
    assert families == {"image", "support"}
    assert [m for m in modules if ".image." in m] == ["headrace.operators.image.flip"]


def test_names_of_dynamic_mode_import_nothing_but_its_random_operators():
    names = after(
        "import headrace.experimental.dynamic as ndd\n"
        "dir(ndd); dir(ndd.readers); ndd.flip\n"
        "print(json.dumps(declared()))"
    )
    assert "flip" in names
    assert not {"resize", "decoders.image", "readers.file", "spectrogram"} & set(names)


@pytest.mark.parametrize(
    "use",
    [
        "fn.image_decoder",
        "ops.NemoAsrReader",
        "fn.experimental.decoders.image",
        "ndd.decoders.image",
        "ndd.readers.File",
        "find('_tensor_subscript')",
    ],
)
def test_every_name_is_found_alone(use):
    assert after(
        "from headrace import fn, ops\n"
        "import headrace.experimental.dynamic as ndd\n"
        "from headrace.operators.support.registry import find\n"
        f"print(json.dumps({use} is not None))"
    )


def test_the_manifest_says_what_the_declarations_say():
    places = {s.name: s.cls.__module__ or "" for s in all_schemas()}
    schemas = {n: find(n) for n, p in places.items() if p.startswith("headrace.operators.")}
    assert schemas.keys() == OPERATORS.keys()
    for name, entry in OPERATORS.items():
        for trait in ("module", "class_name", "hidden", "deprecated", "reader", "dynamic"):
            assert getattr(entry, trait) == getattr(schemas[name], trait), (name, trait)


def test_the_name_of_an_operator_that_nobody_imported_is_taken():
    error = after(
        "from headrace.operators import Input, operator\n"
        "try:\n"
        "    operator('flip', inputs=Input())(lambda xp, data: data)\n"
        "except ValueError as error:\n"
        "    print(json.dumps(str(error)))"
    )
    assert "an operator `flip` already, declared by headrace.operators.image.flip.Flip" in error
    with pytest.raises(ArgumentValueError, match="`flip` already"):
        operator("flip", inputs=Input())(lambda xp, data: data)
    assert find("flip").cls.__module__ == "headrace.operators.image.flip"


def test_operators_of_users_are_listed_once_they_are_declared():
    @operator("testing.listed", inputs=Input())
    def same(xp, data):
        """Return the data."""
        return data

    assert "testing.listed" in {entry.name for entry in listed()}
    assert "listed" in dir(fn.testing)


def test_threads_wait_for_an_import_to_be_complete():
    """A module that is half imported has declared its operators; they do not work yet."""
    assert after(
        "import threading\n"
        "import headrace.operators.support.registry as registry\n"
        "seen, original = [], registry.register\n"
        "def register(schema):\n"
        "    original(schema)\n"
        "    if schema.name == 'brightness' and not seen:\n"
        "        seen.append(threading.Thread(target=look))\n"
        "        seen[0].start()\n"
        "        started.wait()\n"
        "def look():\n"
        "    module = sys.modules['headrace.operators.image.brightness_contrast']\n"
        "    started.set()\n"
        "    registry.find('brightness')\n"
        "    seen.append(module.__spec__._initializing)\n"
        "started = threading.Event()\n"
        "sys.modules['headrace.operators.support.operator'].register = register\n"
        "registry.find('contrast')\n"
        "seen[0].join()\n"
        "print(json.dumps(seen[1] is False))"
    )
