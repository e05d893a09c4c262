"""What every generator ends with: write its files, or tell whether those on disk are up to date."""

from __future__ import annotations

import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def write_or_check(
    files: dict[Path, str], *, check: bool, owned: tuple[tuple[Path, str], ...] = ()
) -> int:
    """Write `files`, or, with `check`, change nothing and fail if any of them differs.

    Parameters
    ----------
    files
        Contents by path.
    owned
        Folders and patterns whose every match must be one of `files`: others are left-overs of
        operators that are gone, and are removed or complained about.

    Returns
    -------
    int
        Exit status: 1 if something is stale.
    """
    left_over = [p for folder, pattern in owned for p in folder.rglob(pattern) if p not in files]
    stale = [p for p, text in files.items() if not p.exists() or p.read_text() != text]
    if check:
        for path in (*stale, *left_over):
            print(f"stale: {path.relative_to(ROOT)}")
        if stale or left_over:
            print(f"Run `python {Path(sys.argv[0]).name}` in tools/, or `hatch run test:generate`.")
        return 1 if stale or left_over else 0
    for path in left_over:
        path.unlink()
    for path in stale:
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(files[path])
        print(f"wrote {path.relative_to(ROOT)}")
    return 0
