"""Gates of speed: today's packages beside those of another commit, as ratios.

    hatch run bench:gates                          beside the commit before, or the last one where
                                                   there are changes that are not committed
    hatch run bench:gates --base main~20 --cases train "tutorial's loop" --rounds 9
    hatch run bench:gates --no-record              figures are not kept

Both versions run the benchmarks of today, each in a process of its own for each case, in turn,
and every second round backwards. A ratio is the median of those of the rounds: above 1 today's is
quicker. What a run finds is appended to `benchmarks/gates.jsonl`, so that a slow slide shows.
"""

from __future__ import annotations

import argparse
import contextlib
import datetime
import importlib.util
import json
import os
import signal
import statistics
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
from typing import Any

import cv2

from benchmarks import audio, cores, dynamic_calls
from benchmarks.support.apart import Apart
from benchmarks.support.harness import Peer, checked_cases, measure
from examples.demo.photographs import photographs, write_dataset
from examples.dynamic.speech import write_speech

ROOT = Path(__file__).parents[1]
RECORD = Path(__file__).with_name("gates.jsonl")
LIMIT = 0.97
"""Ratios below it are marked."""
HOST = ("light", "augment", "train", "audio")
"""Pipelines of `bench:gpu-host` that are measured."""


def _cores(case: str, folder: str, batch_size: int | None = None) -> Peer:
    root = Path(folder) / {"audio": "clips", "small": "digits"}.get(case, "images")
    return cores.make("threads", case, str(root), 2, batch_size=batch_size)


def _tutorial(folder: str) -> Peer:
    """The loop of the audio tutorial, eager, that looks at nothing before its end."""
    epochs, looks = audio.EPOCHS_WITHOUT_A_LOOK, 0
    clips = str(Path(folder) / "clips")
    return audio.make_dynamic("Headrace", clips, 8, "cpu", "eager", 1, 2, looks, epochs)


def _calls(folder: str) -> Peer:
    return dynamic_calls.make_peer()


def _squirrel(folder: str) -> Peer:
    from benchmarks import squirrel

    return squirrel.make_peer(Path(folder) / "shards", 64, 2)


def _tensorflow(folder: str) -> Peer:
    from benchmarks import tensorflow

    return tensorflow.make_peer("Headrace", str(Path(folder) / "images"), 2, False)


def _host(case: str, folder: str) -> Peer:
    from benchmarks import gpu_host

    return gpu_host.HostPeer(case, 64, 2)


CASES: dict[str, Callable[[str], Peer]] = {
    "train": partial(_cores, "train"),
    "val": partial(_cores, "val"),
    "augment": partial(_cores, "augment"),
    "audio": partial(_cores, "audio"),
    "files of 28x28": partial(_cores, "small"),
    "batches of one": partial(_cores, "train", batch_size=1),
    "dynamic call": _calls,
    "tutorial's loop": _tutorial,
    "Squirrel": _squirrel,
    "DALIDataset": _tensorflow,
    **{f"host, {name}": partial(_host, name) for name in HOST},
}
"""How a case is made of the folder with its files, in the process that runs it."""
_NEEDS = {"Squirrel": "squirrel", "DALIDataset": "tensorflow"}


def write_files(folder: Path) -> None:
    """What all cases read."""
    write_dataset(folder / "images", 512)
    write_speech(folder / "clips", 64)
    for number, image in enumerate(list(photographs().values()) * 64):
        path = folder / "digits" / str(number % 10) / f"{number}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        small = cv2.resize(image, (28, 28), interpolation=cv2.INTER_AREA)
        cv2.imwrite(str(path), cv2.cvtColor(small, cv2.COLOR_RGB2GRAY))


@contextlib.contextmanager
def checked_out(revision: str, folder: Path) -> Iterator[Path]:
    """A working tree of a commit, for as long as the block lasts."""
    tree = folder / "base"
    _git("worktree", "add", "--detach", str(tree), revision)
    try:
        if not (tree / "packages/core/src/headrace").is_dir():
            raise SystemExit(f"Commit {revision} has no package of the name `headrace`.")
        yield tree
    finally:
        _git("worktree", "remove", "--force", str(tree))


def _git(*arguments: str) -> str:
    command = ["git", "-C", str(ROOT), *arguments]
    return subprocess.run(command, check=True, capture_output=True, text=True).stdout.strip()


def ratios(case: str, base: Path, folder: Path, rounds: int, seconds: float) -> list[float]:
    """Today's rate by that of `base`, for each round."""
    with Apart("today", ROOT) as today, Apart("base", base) as before:
        peers = [home.peer(CASES[case], str(folder)) for home in (today, before)]
        measure(peers, rounds=rounds, seconds=seconds, swapped=True)
        return [a / b for a, b in zip(peers[0].rates, peers[1].rates, strict=True)]


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--base", help="a commit")
    parser.add_argument("--cases", nargs="+", help=f"of: {', '.join(CASES)}; default: all")
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=1.5, help="of one round of one version")
    parser.add_argument("--no-record", action="store_true")
    return parser.parse_args()


def _can_run(case: str) -> bool:
    return case not in _NEEDS or importlib.util.find_spec(_NEEDS[case]) is not None


def main() -> None:
    """Measure, print, and keep the figures."""
    args = _arguments()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(1))  # the other working tree goes, too
    changed = bool(_git("status", "--porcelain", "--", "packages"))
    revision = _git("rev-parse", "--short", args.base or ("HEAD" if changed else "HEAD~1"))
    commit = _git("rev-parse", "--short", "HEAD") + ("+" if changed else "")
    print(f"{commit} by {revision}: medians of {args.rounds} rounds, least, most")
    found: dict[str, list[float]] = {}
    cases = [case for case in checked_cases(args.cases, list(CASES)) if _can_run(case)]
    with tempfile.TemporaryDirectory() as scratch, checked_out(revision, Path(scratch)) as base:
        write_files(Path(scratch))
        for case in cases:
            try:
                each = ratios(case, base, Path(scratch), args.rounds, args.seconds)
            except RuntimeError as error:  # the other version has not what the case needs
                print(f"{case:16} cannot run: {str(error).strip().splitlines()[-1]}", flush=True)
                continue
            middle = statistics.median(each)
            found[case] = [round(x, 3) for x in (middle, min(each), max(each))]
            mark = "slower" if middle < LIMIT else ""
            figures = "".join(f"{x:8.3f}" for x in found[case])
            print(f"{case:16}{figures}  {mark}".rstrip(), flush=True)
    if found and not args.no_record:
        _keep(commit, revision, args, found)


def _keep(commit: str, base: str, args: argparse.Namespace, found: dict[str, Any]) -> None:
    line = {
        "date": datetime.datetime.now(datetime.UTC).strftime("%Y-%m-%d %H:%M"),
        "commit": commit,
        "base": base,
        "processors": os.cpu_count(),
        "load": round(os.getloadavg()[0], 1),
        "rounds": args.rounds,
        "seconds": args.seconds,
        "median, least, most": found,
    }
    with RECORD.open("a", encoding="utf-8") as file:
        file.write(json.dumps(line) + "\n")
    print(f"Kept in {RECORD.relative_to(ROOT)}.")


if __name__ == "__main__":
    main()
