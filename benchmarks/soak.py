"""A long run with everything that goes wrong in one: does it keep memory, threads or files?

    hatch run bench:soak
    hatch run bench:soak --iterations 1000000 --seconds 3600

Loops break off and are reset, files are bad, callbacks raise, pipelines are built and dropped, and
processes are killed, in an order that a seed decides. Ten times unused memory is given back, and
what is left is measured. The exit status is 1 if it grows by more than 1 % after the first thousand
iterations, or anything is left at the end. Linux only; threads and worker processes have a program
of their own each. These let the C library have two heaps: as a rule it makes eight for each
processor, and each keeps some pages for good once a thread has used it, which may be late.
"""

from __future__ import annotations

import argparse
import gc
import os
import subprocess
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Callable
from dataclasses import astuple, dataclass
from pathlib import Path

from benchmarks.support import processes

_WARM = 1000
"""Iterations after which memory is to stay what it is."""
_MIB = 1 << 20
_END_SECONDS = 20.0
"""How long processes may take to end."""


@dataclass(frozen=True)
class Use:
    """What the program uses, with one pipeline alive and nothing unused kept."""

    program: float
    """Resident memory in MiB."""
    workers: float
    """That of all its processes, in MiB; what they share with others divided among them."""
    shared: float
    """Shared memory that pipelines have, in MiB."""
    processes: int
    threads: int
    files: int

    @classmethod
    def now(cls) -> Use:
        """What is used now."""
        from headrace.executor.processes.shared_pool import SHARED_POOL

        pids = processes.descendants(os.getpid())
        return cls(
            processes.resident_bytes() / _MIB,
            sum(map(processes.own_bytes, pids)) / _MIB,
            SHARED_POOL.stats().bytes_in_use / _MIB,
            len(pids),
            processes.threads(),
            sum(processes.open_files().values()),
        )

    def broken(self, level: Use, growth: float) -> list[str]:
        """Limits that are broken, where `level` is what was used after the first iterations, and
        may have grown by this part.
        """
        found = []
        for what in ("program", "workers", "shared"):
            now, before = getattr(self, what), getattr(level, what)
            if now > before * (1 + growth):
                found.append(f"memory ({what}) grew from {before:.1f} to {now:.1f} MiB")
        return found


def left() -> Counter[str]:
    """What there is when no pipeline is, and how much of it."""
    from headrace.executor.processes.shared_pool import SHARED_POOL
    from headrace.tensors.pool import HOST_POOL

    found = Counter({f"open {name}": n for name, n in processes.open_files().items()})
    found["threads"] = processes.threads()
    found["processes"] = len(processes.descendants(os.getpid()))
    found["mappings of shared memory"] = processes.shared_mappings()
    found["bytes in pools"] = HOST_POOL.stats().bytes_in_use + SHARED_POOL.stats().bytes_in_use
    return found


def run(workers: str, iterations: int, seconds: float, seed: int, growth: float) -> list[str]:
    """One soak, in this process; which limits it has broken."""
    from benchmarks.support.soak_work import Work, settled

    with tempfile.TemporaryDirectory() as scratch:
        first = Work(Path(scratch), workers, seed)
        first.visit_all()
        first.close()
        del first
        before = _settled_down(settled, None)
        work = Work(Path(scratch), workers, seed)
        print(f"{workers}, seed {seed}:", flush=True)
        print("iterations       s  program MiB  workers MiB  shared MiB  processes  threads  files")
        level: Use | None = None
        use = Use.now()
        start = time.perf_counter()
        warm = min(_WARM, iterations // 2)
        rows, is_over = 0, False
        while not is_over:
            work.go_on()
            passed = time.perf_counter() - start
            part = max(work.done / iterations, passed / seconds)
            is_over = part >= 1
            if work.done < warm or (level is not None and 10 * part < rows + 1):
                continue
            rows = int(10 * part)
            work.rest()
            settled()
            use = Use.now()
            # One that was killed may not be back at once.
            if level is None or use.processes > level.processes:
                level = use
            row = astuple(use)
            print(
                f"{work.done:10,} {passed:7.0f} {row[0]:12.1f} {row[1]:12.1f} {row[2]:11.2f}"
                f" {row[3]:10} {row[4]:8} {row[5]:6}",
                flush=True,
            )
        broken = [f"only {work.done:,} iterations in {seconds:.0f} s"] if level is None else []
        broken += use.broken(level or use, growth)
        print("; ".join(f"{count:,} {what}" for what, count in sorted(work.events.items())))
        work.close()
        del work
        more = _settled_down(settled, before) - before
    if more:
        names = ", ".join(thread.name for thread in threading.enumerate())
        broken.append(f"left at the end, more than before: {dict(more)}; threads: {names}")
    return broken


def _settled_down(settled: Callable[[], None], before: Counter[str] | None) -> Counter[str]:
    """What there is when all has ended that is about to: no more than before, or the same twice."""
    end = time.monotonic() + _END_SECONDS
    settled()
    found = left()
    while before is None or found - before:
        time.sleep(0.5)
        settled()
        last, found = found, left()
        if time.monotonic() > end or (before is None and found == last):
            break
    return found


def _apart(workers: str, arguments: list[str]) -> bool:
    """Run one soak in a program of its own; whether all limits were kept."""
    mark = f"HEADRACE_SOAK={os.getpid()}-{workers}"
    name, _, value = mark.partition("=")
    command = [sys.executable, "-m", "benchmarks.soak", "--only", "--workers", workers]
    status = subprocess.run(
        [*command, *arguments],
        env={**os.environ, "MALLOC_ARENA_MAX": "2", name: value},
        check=False,
    ).returncode
    end = time.monotonic() + _END_SECONDS
    while (remaining := processes.with_variable(mark)) and time.monotonic() < end:
        time.sleep(0.1)
    if remaining:
        print(f"FAILED, {workers}: processes are left behind: {remaining}")
    return status == 0 and not remaining


def main() -> None:
    """Soak with threads and with worker processes."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--iterations", type=int, default=100_000)
    parser.add_argument("--seconds", type=float, default=300.0, help="for each kind of workers")
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--growth", type=float, default=0.01, help="by which memory may grow")
    parser.add_argument("--workers", choices=["threads", "processes", "both"], default="both")
    parser.add_argument("--only", action="store_true", help=argparse.SUPPRESS)
    args = parser.parse_args()
    if args.only:
        gc.collect()
        broken = run(args.workers, args.iterations, args.seconds, args.seed, args.growth)
        for line in broken:
            print(f"FAILED, {args.workers}: {line}")
        sys.exit(bool(broken))
    kinds = ["threads", "processes"] if args.workers == "both" else [args.workers]
    arguments = ["--iterations", str(args.iterations), "--seconds", str(args.seconds)]
    arguments += ["--seed", str(args.seed), "--growth", str(args.growth)]
    kept = [_apart(kind, arguments) for kind in kinds]
    sys.exit(not all(kept))


if __name__ == "__main__":
    main()
