"""The process of one library: makes batches of a case for as long as it is told.

    python -m benchmarks.compare.serve NAME CASE FOLDER

Reads seconds, a line for each round, and answers with samples and seconds, as JSON.
"""

from __future__ import annotations

import contextlib
import importlib.metadata
import json
import os
import platform
import sys
import time
from pathlib import Path

from benchmarks.compare.peers.table import library
from benchmarks.support.processor_time import seconds_of_all

_AHEAD = 4
"""Batches that may be ready while others run: they are not counted."""


def main() -> None:
    """Answer until nobody asks."""
    answers = os.fdopen(os.dup(1), "w", buffering=1)
    os.dup2(2, 1)  # what libraries print is no answer
    name, case, folder = sys.argv[1:]
    chosen = library(name)
    batches = chosen.does[case](Path(folder))
    next(batches)
    versions = {d: importlib.metadata.version(d) for d in chosen.distributions}
    print(json.dumps({"python": platform.python_version(), "versions": versions}), file=answers)
    for line in sys.stdin:
        for _ in range(_AHEAD):
            next(batches)
        samples = 0
        began, processor = time.perf_counter(), seconds_of_all()
        while time.perf_counter() - began < float(line):
            samples += next(batches)
        seconds = time.perf_counter() - began
        answer = {
            "samples": samples,
            "seconds": seconds,
            "processor_seconds": seconds_of_all() - processor,
        }
        print(json.dumps(answer), file=answers)
    with contextlib.suppress(Exception):
        batches.close()  # type: ignore[attr-defined]
    os._exit(0)  # workers of libraries are not waited for


if __name__ == "__main__":
    main()
