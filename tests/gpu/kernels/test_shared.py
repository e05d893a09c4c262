"""What Python and CUDA both need is declared in Python, once."""

from __future__ import annotations

import ast
import importlib
import pkgutil
import re
from collections.abc import Iterator
from pathlib import Path

import pytest

import headrace.kernels.gpu as package
from headrace.kernels.gpu import shared

ROOT = Path(package.__path__[0])
MODULES = {path: ast.parse(path.read_text("utf-8")) for path in sorted(ROOT.rglob("*.py"))}
PROGRAMS = {path.name: path.read_text("utf-8") for path in sorted((ROOT / "cuda").iterdir())}

_DECLARATION = re.compile(
    r"^\s*(?:static )?(?:template <.*> )?(?:\[\[\w+\]\] )?constexpr \w+ (.*);", re.MULTILINE
)
_INCLUDED = re.compile(r'^#include "([\w.]+)(?::(\w+))?"', re.MULTILINE)
_BOUND = re.compile(r"__launch_bounds__\(([^,)]*)")


@pytest.fixture(autouse=True)
def gpu_runtime() -> None:
    """Nothing runs here."""


def numbers_of_program(text: str) -> set[str]:
    """Names that a program's own text gives numbers to."""
    declared = [part for found in _DECLARATION.findall(text) for part in found.split(", ")]
    pairs = (part.split(" = ", 1) for part in declared if " = " in part)
    return {name for name, value in pairs if re.fullmatch(r"[\d.]\S*|1u? << \d+", value)}


def numbers_of_module(module: ast.Module) -> Iterator[str]:
    """Names, without underscores in front, that a module gives numbers to by itself."""
    for statement in module.body:
        if not isinstance(statement, ast.Assign):
            continue
        for target in statement.targets:
            names = target.elts if isinstance(target, ast.Tuple) else [target]
            values = statement.value
            parts = values.elts if isinstance(values, ast.Tuple) else [values]
            for name, value in zip(names, parts, strict=False):
                if isinstance(name, ast.Name) and isinstance(value, ast.Constant | ast.BinOp):
                    yield name.id.lstrip("_")


def programs_of(module: ast.Module) -> set[str]:
    """Files that a module names, with all that they include."""
    open_ = [
        node.value
        for node in ast.walk(module)
        if isinstance(node, ast.Constant) and node.value in PROGRAMS
    ]
    found: set[str] = set()
    while open_:
        file = open_.pop()
        found.add(file)
        included = [
            name
            for name, part in _INCLUDED.findall(PROGRAMS[file])
            if not part and name in PROGRAMS
        ]
        open_ += [name for name in included if name not in found]
    return found


def test_no_number_is_declared_on_both_sides() -> None:
    twice = [
        f"{path.name} and cuda/{file}: {name}"
        for path, module in MODULES.items()
        for file in programs_of(module)
        for name in numbers_of_program(PROGRAMS[file]) & set(numbers_of_module(module))
    ]
    assert not twice, f"declare them with `headrace.kernels.gpu.shared.constant`: {twice}"


def test_programs_do_not_say_how_large_their_blocks_are() -> None:
    """The launch does; a program learns it from there."""
    for file, text in PROGRAMS.items():
        own = numbers_of_program(text)
        for bound in _BOUND.findall(text):
            assert not bound[0].isdigit(), f"{file}: __launch_bounds__({bound})"
            assert bound not in own, f"{file} declares {bound} itself"


def test_launches_name_the_size_of_their_blocks() -> None:
    for path, module in MODULES.items():
        for call in (node for node in ast.walk(module) if isinstance(node, ast.Call)):
            sizes = [k.value for k in call.keywords if k.arg == "threads"]
            if isinstance(call.func, ast.Attribute) and call.func.attr == "launch":
                sizes += call.args[2].elts[:1] if isinstance(call.args[2], ast.Tuple) else []
            for size in sizes:
                assert not isinstance(size, ast.Constant), f"{path.name}:{size.lineno}"


def test_what_is_shared_is_used_on_both_sides() -> None:
    for found in pkgutil.walk_packages(package.__path__, f"{package.__name__}."):
        importlib.import_module(found.name)
    declared = {key for key in shared._shared if not key.startswith("tests.")}
    included = {
        f"{module}:{name}"
        for text in PROGRAMS.values()
        for module, name in _INCLUDED.findall(text)
        if name
    }
    needed = {need for key in included for need in shared.shared(key).needs}
    assert declared == included | needed


def test_a_name_stands_for_one_number() -> None:
    module = "tests.constants"
    assert shared.constant(module, "ROWS", 3) == shared.constant(module, "ROWS", 3) == 3
    with pytest.raises(ValueError, match=r"constants:ROWS is declared twice"):
        shared.constant(module, "ROWS", 4)


@pytest.mark.parametrize(
    "text",
    [
        "Sample { uint64 source; }",
        "tests:Sample { uint64 source }",
        "tests:Sample { uint64 extents[COUNT]; }",
        "tests:Sample { char *source; }",
        "tests:Sample { uint64 source; a comment }",
    ],
)
def test_what_is_no_record_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no record"):
        shared.record(text)
