"""Room that a cache may take of a disk where the user gave no limit."""

from __future__ import annotations

import shutil
from pathlib import Path

FREE_SHARE = 0.1
"""Part of a file system that stays free."""


def room_on_disk(folder: Path) -> int:
    """Bytes that may be added below a folder; below 0 where too little is free already."""
    disk = shutil.disk_usage(folder)
    return disk.free - int(FREE_SHARE * disk.total)
