"""The table of digests: reading it, and comparing what comes out now with it."""

from __future__ import annotations

import functools
import json
import os
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

from tests.cases.case import Case
from tests.cases.files import write_files
from tests.cases.reading import HAS_VIDEO, VIDEO
from tests.cases.table import all_cases
from tests.golden.digest import Digest, digests, is_alike
from tests.golden.running import MODES, run

PATH = Path(__file__).with_name("table.json")
DEVICES = ("cpu", "gpu")
AS_PLAIN = "as plain"
"""Names the ways to run a case that give what `plain` gives, bit for bit."""
Found = dict[str, list[Digest] | str]
"""By the key of a case: the digests of its outputs, or an error."""


def found(device: str, mode: str, cases: Iterable[Case] | None = None) -> Found:
    """What comes out now."""
    here = Path.cwd()
    with tempfile.TemporaryDirectory() as folder:
        write_files(Path(folder))
        os.chdir(folder)  # `dump_image` writes there
        try:
            made = run(all_cases() if cases is None else cases, device, mode, folder)
            return {k: v if isinstance(v, str) else digests(v) for k, v in made}
        finally:
            os.chdir(here)


@functools.cache
def kept() -> dict[str, dict[str, dict[str, Any]]]:
    """The table: by device and key, the digests of each way, and which are as `plain`."""
    loaded: dict[str, dict[str, dict[str, Any]]] = json.loads(PATH.read_text())
    return loaded


def entry(key: str, by_mode: dict[str, Found]) -> dict[str, Any]:
    """The line of a case."""
    plain = by_mode["plain"][key]
    line: dict[str, Any] = {"plain": [d.stored() for d in plain]}
    line[AS_PLAIN] = []
    for mode in MODES:
        own = by_mode[mode].get(key)
        if mode == "plain" or own is None:
            continue
        if is_same(own, plain):
            line[AS_PLAIN].append(mode)
        else:
            line[mode] = [d.stored() for d in own]
    return line


def is_same(own: list[Digest], plain: list[Digest]) -> bool:
    """Whether outputs are those of `plain`, as far as they go: dynamic mode has no second batch."""
    return all(a.rows == b.rows[: len(a.rows)] for a, b in zip(own, plain, strict=False)) and len(
        own
    ) <= len(plain)


def differences(device: str, mode: str, now: Found, plain: Found) -> list[str]:
    """For each case of which something else comes out than the table has: what."""
    absent = set() if HAS_VIDEO else {case.key for case in VIDEO}
    lines = {key: line for key, line in kept()[device].items() if key not in absent}
    told = []
    for key, line in lines.items():
        if mode in line or mode in line[AS_PLAIN]:
            difference = _difference(line, mode, now.get(key), plain.get(key))
            if difference:
                told.append(f"{key}\n    {device}, {mode}: {difference}")
    told += [f"{key}\n    {device}, {mode}: not in the table" for key in now.keys() - lines.keys()]
    return told


def _difference(line: dict[str, Any], mode: str, now: Any, plain: Any) -> str:
    if now is None:
        return "the case is gone"
    if isinstance(now, str):
        return now
    if mode in line[AS_PLAIN]:
        same = not isinstance(plain, str) and is_same(now, plain)
        return "" if same else "was what `plain` gives bit for bit, and is not"
    stored, made = line[mode], [d.stored() for d in now]
    if len(stored) != len(made):
        return f"{len(made)} outputs, were {len(stored)}"
    for number, (before, after) in enumerate(zip(stored, made, strict=True)):
        if not is_alike(before, after):
            return f"output {number} is {after}, was {before}"
    return ""
