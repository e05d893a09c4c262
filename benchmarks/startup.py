"""How long until the first batch, with an empty and with a full cache of compiled kernels.

    hatch run bench:startup

Each figure is the minimum of several fresh processes, in seconds.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from pathlib import Path

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


def _seconds(code: str, *arguments: str, cache: Path | None = None) -> float:
    environment = dict(os.environ)
    if cache is not None:
        environment["NUMBA_CACHE_DIR"] = str(cache)
    start = time.perf_counter()
    subprocess.run([sys.executable, "-c", code, *arguments], check=True, env=environment)
    return time.perf_counter() - start


def main() -> None:
    """Measure and print."""
    with tempfile.TemporaryDirectory() as scratch:
        root = str(write_dataset(Path(scratch) / "photographs", 128))
        nothing = min(_seconds("pass") for _ in range(5))
        numpy = min(_seconds("import numpy") for _ in range(5)) - nothing
        imported = min(_seconds("import headrace") for _ in range(5)) - nothing
        interfaces = min(_seconds("from headrace import fn, pipeline_def, types") for _ in range(5))
        cache = Path(scratch) / "kernels"
        cold = _seconds(_FIRST_BATCH, "Headrace", root, cache=cache)
        warm = min(_seconds(_FIRST_BATCH, "Headrace", root, cache=cache) for _ in range(3))
        dali = min(_seconds(_FIRST_BATCH, "DALI", root) for _ in range(3))
        print(f"import numpy                              {numpy:6.2f} s")
        print(f"import headrace                           {imported:6.2f} s")
        print(f"from headrace import fn, pipeline_def ... {interfaces - nothing:6.2f} s")
        print(f"process to first batch, empty cache       {cold - nothing:6.2f} s")
        print(f"process to first batch, full cache        {warm - nothing:6.2f} s")
        print(f"process to first batch, DALI              {dali - nothing:6.2f} s")


if __name__ == "__main__":
    main()
