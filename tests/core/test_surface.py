"""The public surface: what importing costs and brings, names, generated files, sizes, versions."""

from __future__ import annotations

import ast
import importlib
import os
import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

import headrace
import headrace._version
from headrace.operators.support.registry import all_schemas

ROOT = Path(__file__).parents[2]
CORE = ROOT / "packages" / "core" / "src" / "headrace"
PACKAGES = sorted((ROOT / "packages").iterdir())
MODULES = sorted(p for package in PACKAGES for p in (package / "src").rglob("*.py"))
MAX_LINES = 600

# Libraries that no `import headrace` may pay for, nor the definition of a pipeline.
HEAVY = ("cupy", "cv2", "jax", "numba", "nvidia", "scipy", "simplejpeg", "tensorflow", "torch")
# Distribution that brings a module, where the names differ.
DISTRIBUTION_OF = {
    "cuda": "cuda-pathfinder",
    "cv2": "opencv-python-headless",
    "llvmlite": "numba",
    "nvidia": "nvidia-nvimgcodec-cu13",
    "PIL": "pillow",
    "pillow_heif": "pillow-heif",
}


def run_python(code: str) -> str:
    """What `code` prints in an interpreter of its own that sees every package's sources."""
    sources = os.pathsep.join(str(package / "src") for package in PACKAGES)
    done = subprocess.run(
        [sys.executable, "-W", "error", "-c", code],
        capture_output=True,
        text=True,
        check=False,
        env=os.environ | {"PYTHONPATH": sources},
    )
    assert done.returncode == 0, done.stderr
    return done.stdout


@pytest.mark.parametrize(
    "statement",
    [
        "import headrace",
        "from headrace import fn, ops, types, pipeline_def, Pipeline",
        "import headrace.fn.decoders, headrace.ops.readers",
        "import headrace.plugin.base_iterator",
    ],
)
def test_import_brings_no_heavy_library(statement):
    loaded = run_python(f"{statement}\nimport sys\nprint(*sys.modules)").split()
    assert not {name.partition(".")[0] for name in loaded} & set(HEAVY)


def test_import_of_the_package_alone_loads_next_to_nothing_of_it():
    loaded = run_python("import headrace, sys\nprint(*sys.modules)").split()
    assert {m for m in loaded if m.startswith("headrace")} == {
        "headrace",
        "headrace._missing",
        "headrace._version",
    }


def test_every_public_name_is_there():
    for name in dir(headrace):
        getattr(headrace, name)  # raises if it is not


PUBLIC_MODULES = [
    "backend",
    "data_node",
    "errors",
    "experimental",
    "experimental.dynamic",
    "experimental.dynamic.math",
    "experimental.dynamic.pytorch",
    "experimental.dynamic.random",
    "experimental.dynamic.readers",
    "fn",
    "fn.readers",
    "math",
    "operators",
    "ops",
    "ops.readers",
    "pipeline",
    "pipeline.experimental",
    "plugin",
    "plugin.base_iterator",
    "plugin.jax",
    "plugin.jax.clu",
    "plugin.jax.fn",
    "plugin.numba",
    "plugin.numba.fn",
    "plugin.pytorch",
    "plugin.pytorch.fn",
    "plugin.pytorch.torch_utils",
    "plugin.squirrel",
    "tensors",
    "types",
]
# Parts that are imported by their own names, or need a library that may not be there.
NEED_MORE = {
    *("base_iterator", "dynamic", "jax", "nodes", "numba", "pytorch", "squirrel", "tf"),
    "torchvision",
}


@pytest.mark.parametrize("name", PUBLIC_MODULES)
def test_modules_list_public_names_only(name):
    module = importlib.import_module(f"headrace.{name}")
    listed = dir(module)
    assert listed
    assert not [each for each in listed if each.startswith("_")]
    declared = getattr(module, "__all__", ())
    for each in set(listed) - {*declared, *NEED_MORE}:
        # What a module has imported for itself comes from elsewhere.
        found = getattr(module, each)
        home = getattr(found, "__module__", None) or found.__name__
        assert home.startswith("headrace."), f"{each} of {home}"
    assert "annotations" not in listed
    assert "TYPE_CHECKING" not in listed


def test_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="no attribute 'nothing'"):
        _ = headrace.nothing


def test_modules_are_small_and_say_what_they_are():
    texts = {str(path.relative_to(ROOT / "packages")): path.read_text() for path in MODULES}
    assert not [name for name, text in texts.items() if len(text.splitlines()) > MAX_LINES]
    assert not [name for name, text in texts.items() if not ast.get_docstring(ast.parse(text))]


def test_core_imports_only_what_it_declares():
    project = tomllib.loads((ROOT / "packages/core/pyproject.toml").read_text())["project"]
    extras = project["optional-dependencies"].values()
    wanted = [*project["dependencies"], *(w for extra in extras for w in extra)]
    declared = {re.split(r"[^\w.-]", w, maxsplit=1)[0] for w in wanted}
    declared |= {re.sub(r"-cuda\d+x$", "", d) for d in declared}
    for path in sorted(CORE.rglob("*.py")):
        for module in _imported_modules(ast.parse(path.read_text())):
            top = module.partition(".")[0]
            if top == "headrace" or top in sys.stdlib_module_names:
                continue
            assert not module.startswith("nvidia.dali"), f"{path}: DALI is only compared with"
            assert DISTRIBUTION_OF.get(top, top) in declared, f"{path} imports {module}"


def _imported_modules(tree):
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            yield node.module


# Other tests declare operators of their own, later.
SCHEMAS = [schema for schema in all_schemas() if not schema.hidden]


def test_operator_is_documented():
    for schema in SCHEMAS:
        assert schema.doc, f"{schema.name} has no docstring"
        for declared in schema.inputs:
            assert declared.name, schema.name
        for arg in schema.args.values():
            assert arg.doc, f"argument {arg.name} of {schema.name} is not documented"
            assert arg.doc.rstrip()[-1] in ".:`)", (
                f"{schema.name}, {arg.name}: {arg.doc!r} does not end"
            )


@pytest.mark.parametrize("tool", ["gen_manifest.py", "gen_reference.py"])
def test_generated_files_are_up_to_date(tool):
    done = subprocess.run(
        [sys.executable, str(ROOT / "tools" / tool), "--check"],
        capture_output=True,
        text=True,
        check=False,
    )
    assert done.returncode == 0, done.stdout + done.stderr


def test_stubs_are_complete_and_up_to_date(tmp_path):
    """As editable installs have them; `hatch run test:generate` writes them again."""
    subprocess.run([sys.executable, ROOT / "packages/core/stubs", tmp_path], check=True)
    made = {p.relative_to(tmp_path): p.read_text() for p in tmp_path.rglob("*.pyi")}
    package = ROOT / "packages/core/src/headrace"
    assert {p.relative_to(package): p.read_text() for p in package.rglob("*.pyi")} == made


def test_all_distributions_have_one_version():
    version = headrace._version.__version__
    for package in PACKAGES:
        project = tomllib.loads((package / "pyproject.toml").read_text())["project"]
        if package.name == "core":
            assert project["dynamic"] == ["version"]
            continue
        assert project["version"] == version
        assert f"headrace=={version}" in project["dependencies"]


def test_every_package_has_the_licence():
    text = (ROOT / "LICENSE").read_text()
    assert all((package / "LICENSE").read_text() == text for package in PACKAGES)


def test_plugins_bring_no_init_above_their_own():
    for package in PACKAGES:
        if package.name != "core":
            assert not (package / "src/headrace/__init__.py").exists()
            assert not (package / "src/headrace/plugin/__init__.py").exists()
