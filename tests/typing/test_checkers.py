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
