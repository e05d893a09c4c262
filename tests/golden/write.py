"""Write the table of golden hashes again, and tell what changed.

python -m tests.golden.write
python -m tests.golden.write --check          tell, and leave the table
"""

from __future__ import annotations

import argparse
import contextlib
import json

from tests.golden.digest import is_alike
from tests.golden.emulated import emulated_gpu
from tests.golden.running import MODES
from tests.golden.table import AS_PLAIN, DEVICES, PATH, Found, entry, found, kept


def main() -> None:
    """Do so."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--write", action="store_true", help="the table")
    options = parser.parse_args()
    table: dict[str, dict[str, dict[str, object]]] = {}
    errors = []
    for device in DEVICES:
        with emulated_gpu() if device == "gpu" else contextlib.nullcontext():
            by_mode: dict[str, Found] = {mode: found(device, mode) for mode in MODES}
        for mode, made in by_mode.items():
            errors += [
                f"{k}\n    {device}, {mode}: {v}" for k, v in made.items() if isinstance(v, str)
            ]
        if not errors:
            table[device] = {key: entry(key, by_mode) for key in sorted(by_mode["plain"])}
    if errors:
        raise SystemExit("\n".join([*errors, f"{len(errors)} errors; no table"]))
    changed = _told(kept() if PATH.exists() else {}, table)
    print("\n".join([*changed, f"{len(changed)} lines changed"]))
    if options.write:
        PATH.write_text(_text(table))


def _told(before: dict, now: dict) -> list[str]:
    """For each line that is another: device, case, and the ways to run it that changed."""
    told = []
    for device, lines in now.items():
        old = before.get(device, {})
        for key in sorted(lines.keys() | old.keys()):
            one, other = old.get(key), lines.get(key)
            if one is None or other is None:
                told.append(f"{device}: {key}: {'new' if one is None else 'gone'}")
                continue
            modes = [m for m in MODES if not _is_kept(one, other, m)]
            if modes:
                told.append(f"{device}: {key}: {', '.join(modes)}")
            else:  # only the last bits are others
                lines[key] = one
    return told


def _is_kept(one: dict, other: dict, mode: str) -> bool:
    if (mode in one[AS_PLAIN]) != (mode in other[AS_PLAIN]):
        return False
    before, now = one.get(mode, []), other.get(mode, [])
    return len(before) == len(now) and all(map(is_alike, before, now))


def _text(table: dict) -> str:
    """JSON with a line for each case."""
    devices = []
    for device, lines in table.items():
        entries = [
            f"{json.dumps(key)}: {json.dumps(line, separators=(',', ':'))}"
            for key, line in lines.items()
        ]
        devices.append(f'"{device}": {{\n' + ",\n".join(entries) + "\n}")
    return "{\n" + ",\n".join(devices) + "\n}\n"


if __name__ == "__main__":
    main()
