"""Memory of a long run: resident size over many iterations, beside real DALI.

    hatch run bench:memory
    hatch run bench:memory --iterations 2000 --threads 16

Each library runs in a process of its own; figures are MiB of resident memory as the operating
system tells them, with that of worker processes (where they share pages, each counts for its part).
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from pathlib import Path

from benchmarks.support import processes
from examples.demo.photographs import write_dataset

_MIB = 1 << 20
_CHECKPOINTS = (0.1, 0.25, 0.5, 0.75, 1.0)


def _resident_mib() -> float:
    workers = sum(map(processes.own_bytes, processes.descendants(os.getpid())))
    return (processes.resident_bytes() + workers) / _MIB


def _peak_mib() -> float:
    for line in Path("/proc/self/status").read_text().splitlines():
        if line.startswith("VmHWM"):
            return int(line.split()[1]) / 1024
    return float("nan")


def run(library: str, root: str, iterations: int, batch_size: int, case: str, threads: int) -> None:
    """Run one library and print its figures as JSON: the body of a process."""
    from benchmarks.support import graphs, libraries

    lib = libraries.library(library)
    start = _resident_mib()
    pipe = lib.Pipeline(batch_size=batch_size, num_threads=threads, device_id=None, seed=1)
    with pipe:
        pipe.set_outputs(*getattr(graphs, case)(lib, root))
    marks = {int(iterations * c) for c in _CHECKPOINTS}
    sizes = []
    for number in range(1, iterations + 1):
        pipe.run()
        if number in marks:
            sizes.append(round(_resident_mib(), 1))
    found = {"start": round(start, 1), "sizes": sizes, "peak": round(_peak_mib(), 1)}
    print(json.dumps(found))


def main() -> None:
    """Compare the libraries."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--batch-size", type=int, default=64)
    parser.add_argument("--case", choices=["train", "validate"], default="train")
    parser.add_argument("--threads", type=int, default=2)
    parser.add_argument("--only", help=argparse.SUPPRESS)
    parser.add_argument("--root", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.only:
        run(args.only, args.root, args.iterations, args.batch_size, args.case, args.threads)
        return
    with tempfile.TemporaryDirectory() as scratch:
        root = write_dataset(Path(scratch) / "photographs", 600)
        print(f"{args.case}, batch {args.batch_size}, MiB after {_CHECKPOINTS} of the iterations")
        for library in ("DALI", "Headrace"):
            command = [sys.executable, "-m", "benchmarks.memory", "--only", library]
            command += ["--root", str(root), "--iterations", str(args.iterations)]
            command += ["--batch-size", str(args.batch_size), "--case", args.case]
            command += ["--threads", str(args.threads)]
            result = subprocess.run(command, check=True, capture_output=True, text=True)
            found = json.loads(result.stdout.splitlines()[-1])
            print(
                f"{library:9} start {found['start']}, then {found['sizes']}, "
                f"peak of the program {found['peak']}"
            )


if __name__ == "__main__":
    main()
