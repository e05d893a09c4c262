"""How long until the first batch, with an empty and with a full cache of compiled kernels.

    hatch run bench:startup

Each figure is the minimum of several fresh processes: seconds, and seconds of processors, which
count on a machine that others use. The program is the README's.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

from examples.demo.photographs import write_dataset

_FIRST_BATCH = """
import sys
from benchmarks.support import graphs
from benchmarks.support.libraries import library
lib = library(sys.argv[1])
pipe = lib.Pipeline(batch_size=64, num_threads=2, device_id=None, seed=1)
with pipe:
    pipe.set_outputs(*graphs.train(lib, sys.argv[2]))
pipe.run()
"""
_NOTHING_BROUGHT = "from headrace.kernels import ahead; ahead.FOLDER = ahead.FOLDER / 'none'\n"


class _Cost(NamedTuple):
    seconds: float
    processor_seconds: float


def _cost(code: str, *arguments: str, cache: Path | None = None, times: int = 3) -> _Cost:
    """The least of several processes; each with a new folder below `cache`, if that is given."""
    costs = []
    for _ in range(times):
        environment = dict(os.environ)
        if cache is not None:
            environment["HEADRACE_CACHE_DIR"] = tempfile.mkdtemp(dir=cache)
        begin, before = time.perf_counter(), os.times()
        subprocess.run([sys.executable, "-c", code, *arguments], check=True, env=environment)
        after = os.times()
        processors = (after.children_user - before.children_user) + (
            after.children_system - before.children_system
        )
        costs.append(_Cost(time.perf_counter() - begin, processors))
    return _Cost(*map(min, zip(*costs, strict=True)))


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as scratch:
        root = str(write_dataset(Path(scratch) / "photographs", 128))
        new = Path(scratch)
        headrace = (_FIRST_BATCH, "Headrace", root)
        cases = {
            "Python": _cost("pass", times=5),
            "import numpy": _cost("import numpy", times=5),
            "import headrace": _cost("import headrace", times=5),
            "from headrace import fn, pipeline_def, types": _cost(
                "from headrace import fn, pipeline_def, types", times=5
            ),
            "first batch, empty cache": _cost(*headrace, cache=new),
            "first batch, empty cache, no kernels brought along": _cost(
                _NOTHING_BROUGHT + _FIRST_BATCH, *headrace[1:], cache=new, times=2
            ),
            "first batch, full cache": _cost(*headrace),
            "first batch, DALI": _cost(_FIRST_BATCH, "DALI", root),
        }
    print(f"{'from the start of the process':50} seconds  of processors")
    for name, cost in cases.items():
        print(f"{name:50} {cost.seconds:7.2f}  {cost.processor_seconds:13.2f}")


if __name__ == "__main__":
    main()
