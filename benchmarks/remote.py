"""Reading from an object store far away, beside the same files on the local disk.

    hatch run bench:remote
    hatch run bench:remote --latency 50 --rounds 9

A program of its own serves photographs on the loopback and answers every request after `--latency`
milliseconds. Figures are samples per second: of an epoch of training in which all batches but the
first count, and of reading alone.
"""

from __future__ import annotations

import argparse
import multiprocessing
import os
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from http.server import SimpleHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

import headrace as hr
from benchmarks.support import graphs
from benchmarks.support.harness import checked_cases
from benchmarks.support.instead import Instead
from examples.demo.photographs import write_dataset


class _Store(SimpleHTTPRequestHandler):
    """Answers late, with whole files and ranges of them."""

    protocol_version = "HTTP/1.1"
    disable_nagle_algorithm = True

    def __init__(self, *args: Any, latency: float, **more: Any) -> None:
        self._latency = latency
        super().__init__(*args, **more)

    def do_GET(self) -> None:
        time.sleep(self._latency)
        given = self.headers.get("Range")
        if given is None:
            super().do_GET()
            return
        content = Path(self.translate_path(self.path)).read_bytes()
        begin, _, end = given.removeprefix("bytes=").partition("-")
        part = content[int(begin) : int(end) + 1 if end else None]
        self.send_response(206)
        self.send_header("Content-Length", str(len(part)))
        first, last = int(begin), int(begin) + len(part) - 1
        self.send_header("Content-Range", f"bytes {first}-{last}/{len(content)}")
        self.end_headers()
        self.wfile.write(part)

    def do_HEAD(self) -> None:
        time.sleep(self._latency)
        super().do_HEAD()

    def log_message(self, *_: Any) -> None:
        """Say nothing."""


class _Server(ThreadingHTTPServer):
    request_queue_size = 1024
    daemon_threads = True


def _serve(root: str, latency: float, port: Any) -> None:
    server = _Server(("127.0.0.1", 0), partial(_Store, directory=root, latency=latency))
    port.value = server.server_address[1]
    server.serve_forever()


@contextmanager
def _store(root: Path, latency: float) -> Iterator[str]:
    """The address of a store that serves a folder."""
    context = multiprocessing.get_context("spawn")
    port = context.Value("i", 0)
    process = context.Process(target=_serve, args=(str(root), latency, port), daemon=True)
    process.start()
    while not port.value:
        if not process.is_alive():
            raise RuntimeError("the store has not started")
        time.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port.value}"
    finally:
        process.kill()
        process.join()


def _epoch(read: Any, train: bool, batch: int, threads: int) -> tuple[float, float]:
    """Seconds until the first batch, and samples per second of the others of an epoch."""
    pipe = hr.Pipeline(batch, num_threads=threads, device_id=None, seed=1)
    with pipe:
        pipe.set_outputs(*(graphs.train(Instead(read), "") if train else read()))
    pipe.build()
    start = time.perf_counter()
    pipe.run()
    first = time.perf_counter()
    count = pipe.epoch_size("r") // batch - 1
    for _ in range(count):
        pipe.run()
    return first - start, count * batch / (time.perf_counter() - first)


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(
        description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter
    )
    parser.add_argument("--case", action="append", help="read or train; default: both")
    parser.add_argument("--latency", type=float, default=20.0, help="of an answer, in milliseconds")
    parser.add_argument("--files", type=int, default=2000, help="number of photographs")
    parser.add_argument("--batch", type=int, default=64)
    parser.add_argument("--threads", type=int, default=os.cpu_count() or 2)
    parser.add_argument("--rounds", type=int, default=5)
    args = parser.parse_args()
    table = Table(title=f"{args.latency:g} ms, medians of {args.rounds} epochs")
    for title in ("case", "files", "first batch, s", "then, samples/s", "of local"):
        table.add_column(title)
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        write_dataset(root, args.files)
        names = sorted(str(path.relative_to(root)) for path in root.glob("*/*.jpg"))
        with _store(root, args.latency / 1000) as address:
            for case in checked_cases(args.case, ("read", "train")):
                found: dict[str, list[tuple[float, float]]] = {"local": [], "remote": []}
                for _ in range(args.rounds):
                    for name, place in (("local", str(root)), ("remote", address)):
                        files = [f"{place}/{each}" for each in names]

                        def read(files: list[str] = files) -> Any:
                            return tuple(
                                hr.fn.readers.file(files=files, random_shuffle=True, name="r")
                            )

                        found[name].append(_epoch(read, case == "train", args.batch, args.threads))
                local = statistics.median(rate for _, rate in found["local"])
                for name, rows in found.items():
                    first, rate = [statistics.median(each) for each in zip(*rows, strict=True)]
                    table.add_row(case, name, f"{first:.3f}", f"{rate:,.0f}", f"{rate / local:.2f}")
    Console().print(table)


if __name__ == "__main__":
    main()
