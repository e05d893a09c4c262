"""What type checkers find in users' programs."""

from __future__ import annotations

import json
import os
import re
import runpy
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.support import one_file_a_class

HERE = Path(__file__).parent
SOURCES = HERE.parents[1] / "packages" / "core" / "src"
MISTAKES = {
    number: what
    for number, line in enumerate((HERE / "wrong.py").read_text().splitlines(), 1)
    for what in re.findall("# wrong: (.*)", line)
}


def of_mypy(folder: Path, program: Path) -> dict[int, list[str]]:
    """Everything that mypy prints, by line."""
    settings = folder / "mypy.ini"
    settings.write_text(f"[mypy]\ncheck_untyped_defs = true\nmypy_path = {SOURCES}\n")
    said: dict[int, list[str]] = {}
    for line in run("mypy", f"--config-file={settings}", program).splitlines():
        if place := re.match(r".*\.py:(\d+): (error|note): ", line):
            said.setdefault(int(place[1]), []).append(line[place.end() :])
    return said


def mypy(folder: Path, files: list[Path]) -> dict[str, dict[int, str]]:
    settings = folder / "mypy.ini"
    settings.write_text(
        "[mypy]\ncheck_untyped_defs = true\nnamespace_packages = true\n"
        "explicit_package_bases = true\nignore_missing_imports = true\n"
        f"mypy_path = {SOURCES}\n"
    )
    output = run(
        *("mypy", f"--config-file={settings}", f"--cache-dir={folder}", "--output=json"), *files
    )
    found: dict[str, dict[int, str]] = {path.name: {} for path in files}
    for line in output.splitlines():
        if line.startswith("{"):
            one = json.loads(line)
            if one["severity"] == "error":
                found[Path(one["file"]).name][one["line"]] = one["message"]
    return found


def pyright(folder: Path, files: list[Path]) -> dict[str, dict[int, str]]:
    (folder / "pyrightconfig.json").write_text(
        json.dumps(
            {
                "extraPaths": [str(SOURCES)],
                "reportPrivateImportUsage": False,  # DALI says of nothing that it is public
                "reportUnusedExpression": False,
            }
        )
    )
    output = run("pyright", "--outputjson", f"--pythonpath={sys.executable}", "-p", folder)
    found: dict[str, dict[int, str]] = {path.name: {} for path in files}
    for one in json.loads(output)["generalDiagnostics"]:
        if one["severity"] == "error":
            line = one["range"]["start"]["line"] + 1
            found[Path(one["file"]).name][line] = one["message"]
    return found


def run(*arguments: object) -> str:
    result = subprocess.run(
        [sys.executable, "-m", *map(str, arguments)],
        env={**os.environ, "PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"},
        capture_output=True,
        text=True,
        timeout=300,
        check=False,
    )
    assert result.returncode in (0, 1), result.stdout + result.stderr
    return result.stdout


CHECKERS = {"mypy": mypy, "pyright": pyright}


@pytest.fixture(scope="module", params=CHECKERS)
def found(request, tmp_path_factory):
    """The checker's name and, by file and line, what it found in one run over all programs."""
    pytest.importorskip(request.param)
    folder = tmp_path_factory.mktemp(request.param)
    files = [Path(shutil.copy(HERE / name, folder)) for name in ("right.py", "wrong.py")]
    if request.param == "pyright":  # mypy takes four times as long for DALI as for all else
        text = (HERE / "wrong.py").read_text()
        files.append(folder / "wrong_with_dali.py")
        files[-1].write_text(re.sub("(from|import) headrace", r"\1 nvidia.dali", text))
    return CHECKERS[request.param](folder, files)


def test_right_programs_are_accepted(found):
    assert found["right.py"] == {}


def test_every_mistake_is_found_and_nothing_else(found):
    missed = {what for number, what in MISTAKES.items() if number not in found["wrong.py"]}
    assert not missed
    assert {n: m for n, m in found["wrong.py"].items() if n not in MISTAKES} == {}


def test_dalis_stubs_find_no_more(found):
    pytest.importorskip("nvidia.dali")
    if "wrong_with_dali.py" not in found:
        pytest.skip("DALI is looked at with pyright only")
    theirs = {MISTAKES[n] for n in found["wrong_with_dali.py"] if n in MISTAKES}
    ours = {MISTAKES[n] for n in found["wrong.py"]}
    assert len(theirs) > 10
    assert theirs <= ours


def test_the_right_program_runs(tmp_path):
    root = one_file_a_class(tmp_path, 4)
    runpy.run_path(str(HERE / "right.py"))["main"](str(root))


AFTER_A_MISTAKE = """
from typing import assert_type

import numpy as np

from headrace import Pipeline, fn, pipeline_def
from headrace.data_node import DataNode

node = fn.random.uniform(shape=[3, 3, 3])
fn.resize(node, size="3")
fn.rotate(node, angle="3")
assert_type(fn.resize(np.ones((3, 3, 3)), size=3), DataNode)
assert_type(fn.resize([[1.0, 2.0]], size=3), DataNode)


@pipeline_def(batch_sise=3)
def misspelt(size: int):
    return fn.random.uniform(shape=[size])


@pipeline_def(batch_size="3")
def of_another_type(size: int):
    return fn.random.uniform(shape=[size])


assert_type(of_another_type(3), Pipeline)
"""


def test_what_mypy_says_of_a_mistake(tmp_path):
    """In a line where there is one way to call it; and what is decorated keeps its type."""
    (tmp_path / "mistakes.py").write_text(
        f"{AFTER_A_MISTAKE}assert_type(misspelt(3), Pipeline)\nmisspelt('x')\n"
    )
    said = of_mypy(tmp_path, tmp_path / "mistakes.py")
    assert list(said) == [10, 11, 16, 21, 28]
    assert 'Argument "size" to "resize" has incompatible type' in said[10][0]
    assert 'did you mean "batch_size"?' in said[16][0]
    assert 'Argument "batch_size" to "pipeline_def" has incompatible type' in said[21][0]


LONGEST_ANSWERS = {
    # Characters of mypy's and of pyright's. Of what is overloaded mypy prints all there is.
    'fn.resize(node, size="3")': (160, 700),
    "fn.resize(node, sise=3)": (3500, 200),
    'fn.resize(node, size=3, interp_type="linear")': (3500, 600),
    'fn.crop_mirror_normalize(node, mean="0")': (160, 700),
    "fn.crop_mirror_normalize(node, men=0.0)": (160, 100),
    'fn.crop_mirror_normalize([node, node], mean="0")': (160, 700),
    'fn.decoders.image(node, output_type="RGB")': (120, 450),
    "fn.decoders.image(node, outputtype=3)": (160, 100),
    "fn.rotate(node)": (100, 100),
    'fn.flip("photograph", vertical=1, horizontal="0")': (400, 500),
    'pipeline_def(batch_size="3")': (120, 450),
    "pipeline_def(batch_sise=3)": (160, 100),
    'ndd.resize(ndd.tensor([[[1]]]), size="3")': (160, 800),
}


def of_pyright(folder: Path, program: Path) -> dict[int, list[str]]:
    """Everything that pyright prints, by line."""
    return {line: [text] for line, text in pyright(folder, [program])[program.name].items()}


@pytest.mark.parametrize("checker", ["mypy", "pyright"])
def test_answers_are_short(checker, tmp_path):
    pytest.importorskip(checker)
    program = tmp_path / "mistakes.py"
    head = (
        "import headrace.experimental.dynamic as ndd\nfrom headrace import fn, pipeline_def\n"
        "node = fn.random.uniform(shape=[3, 3, 3])\n"
    )
    program.write_text("\n".join([head, *LONGEST_ANSWERS]))
    said = {"mypy": of_mypy, "pyright": of_pyright}[checker](tmp_path, program)
    which = ["mypy", "pyright"].index(checker)
    for number, (call, longest) in enumerate(LONGEST_ANSWERS.items(), 5):
        answer = "\n".join(said.get(number, []))
        assert answer, call
        assert len(answer) <= longest[which], (call, len(answer), answer)
    assert said.keys() == set(range(5, 5 + len(LONGEST_ANSWERS)))
