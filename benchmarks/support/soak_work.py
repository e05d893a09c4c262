"""What a soak does: pipelines that are used, and misused, in every way that a program may."""

from __future__ import annotations

import contextlib
import gc
import os
import random
import signal
import time
from collections import Counter
from collections.abc import Callable
from multiprocessing import resource_tracker
from pathlib import Path
from typing import Any

import cv2
import numpy as np

import headrace.backend
from benchmarks.support.soak_callbacks import BATCH, MishapError, Source, function, sample
from headrace import fn, pipeline_def, types
from headrace.errors import HeadraceError
from headrace.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

IMAGES = 23
_POLICIES = ("skip", "replace", "raise")
_THREADS = 2
_START_SECONDS = 60.0


def write_images(root: Path, *, bad: bool) -> Path:
    """JPEGs in two class folders; with ``bad``, some that are cut off, empty, or no images."""
    for number in range(IMAGES):
        folder = root / str(number % 2)
        folder.mkdir(parents=True, exist_ok=True)
        pixels = np.random.default_rng(number).integers(0, 255, (8, 10, 3), np.uint8)
        image = cv2.resize(pixels, (70 + number % 9, 60 + number % 7))
        data = cv2.imencode(".jpg", image)[1].tobytes()
        if bad and number % 6 == 2:
            data = (data[: len(data) // 3], b"", b"not an image")[number // 6 % 3]
        (folder / f"{number}.jpg").write_bytes(data)
    return root


@pipeline_def(batch_size=BATCH, num_threads=_THREADS, device_id=None)
def training(root: str) -> Any:
    """The images of a folder, cropped, rotated, normalised."""
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, name="reader")
    images = fn.decoders.image_random_crop(jpegs)
    images = fn.rotate(images, angle=fn.random.uniform(range=[-9.0, 9.0]))  # ragged
    images = fn.resize(images, size=[32, 32])
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="CHW", mirror=fn.random.coin_flip()
    )
    return images, labels


@pipeline_def(batch_size=BATCH, num_threads=2, device_id=None)
def fed(source: Source) -> Any:
    """What a source gives, through a function of the user's."""
    images = fn.external_source(source)
    images = fn.brightness_contrast(images, brightness=fn.random.uniform(range=[0.5, 1.5]))
    return fn.python_function(images, function=function)


@pipeline_def(batch_size=BATCH, num_threads=1, device_id=None, py_num_workers=1)
def fed_in_parallel(parallel: Any) -> Any:
    """What a source gives that has a process, or a thread, of its own."""
    images = fn.external_source(sample, batch=False, parallel=parallel)
    return fn.flip(images, horizontal=fn.random.coin_flip())


class Work:
    """Does what a soak does, in an order that a seed decides.

    Parameters
    ----------
    scratch
        An empty folder.
    workers
        `workers` of the pipelines.
    seed
        What decides.
    """

    def __init__(self, scratch: Path, workers: str, seed: int) -> None:
        self.chance = random.Random(seed)
        self.options: dict[str, Any] = {"workers": workers}
        self.good = str(write_images(scratch / "good", bad=False))
        self.bad = str(write_images(scratch / "bad", bad=True))
        self.done = 0
        """Batches that were taken."""
        self.events: Counter[str] = Counter()
        """What has happened, and how often."""
        self._steady = self._loader(self.good, LastBatchPolicy.PARTIAL)
        """A pipeline that lives as long as the soak does."""
        self._parts: list[tuple[int, Callable[[], None]]] = [
            (12, self._train),
            (4, self._bad_files),
            (4, self._callbacks),
            (1, self._parallel_source),
            (2, self._built_and_dropped),
        ]

    def go_on(self) -> None:
        """Do one thing, of up to some dozen iterations."""
        weights, parts = zip(*self._parts, strict=True)
        self.chance.choices(parts, weights)[0]()

    def visit_all(self) -> None:
        """Do each thing once, and import all that it needs."""
        resource_tracker.ensure_running()  # a process of Python's, which stays
        for _, part in self._parts:
            part()

    def rest(self) -> None:
        """Have the steady pipeline alone, in as many workers as it asks for: new ones, since what
        a worker has of its own grows with what it has met.
        """
        from headrace.executor.processes.pool import POOL

        gc.collect()
        if self.options["workers"] == "processes":
            self._kill_server()
            end = time.monotonic() + _START_SECONDS
            self._use(self._steady)
            # Threads carry samples until new workers answer, which may take long on a busy machine.
            while len(POOL.pids()) < _THREADS and time.monotonic() < end:
                self._use(self._steady)
        for _ in range(3):
            self._use(self._steady)

    def close(self) -> None:
        """Let go of everything."""
        del self._steady, self._parts

    def _seed(self) -> int:
        return self.chance.randrange(1 << 30)

    def _loader(self, root: str, policy: LastBatchPolicy, **options: Any) -> Any:
        pipe = training(root, seed=self._seed(), **self.options, **options)
        return DALIGenericIterator(
            pipe,
            ["image", "label"],
            reader_name="reader",
            last_batch_policy=policy,
            prepare_first_batch=False,
        )

    def _took(self) -> None:
        self.done += 1
        if self.options["workers"] == "processes" and self.chance.random() < 0.004:
            self._kill_workers()

    def _kill_workers(self) -> None:
        """Kill a worker process, at times all of them with the server that forks them."""
        from headrace.executor.processes.pool import POOL

        if self.chance.random() < 0.1:
            self._kill_server()
            self.events["servers killed"] += 1
        elif pids := POOL.pids():
            self._kill(self.chance.choice(pids))
            self.events["workers killed"] += 1

    def _kill_server(self) -> None:
        """End the process that forks workers, and all of these."""
        from headrace.executor.processes.server_process import SERVER

        if pid := SERVER.pid():
            self._kill(pid)

    @staticmethod
    def _kill(pid: int) -> None:
        with contextlib.suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)

    def _attempt(self, take: Callable[[], Any]) -> bool:
        """Take a batch; whether there was one."""
        try:
            take()
        except StopIteration:
            self.events["ends of epochs"] += 1
            return False
        except (HeadraceError, MishapError) as error:
            self.events[type(error).__name__] += 1
            self.done += 1  # the iteration has been worked on
            return False
        self._took()
        return True

    def _use(self, loader: Any) -> None:
        """A loop over a loader that ends, breaks off, or is reset."""
        stop = self.chance.choice([2, 5, IMAGES])
        try:
            for batch, _ in zip(loader, range(stop), strict=False):
                float(batch[0]["image"].sum())
                self._took()
        except HeadraceError as error:
            self.events[type(error).__name__] += 1
            self.done += 1
        else:
            self.events["breaks" if stop < IMAGES else "ends of epochs"] += 1
        if self.chance.random() < 0.5:
            self.events["resets"] += 1
            with contextlib.suppress(HeadraceError):
                loader.reset()

    def _train(self) -> None:
        self._use(self._steady)

    def _bad_files(self) -> None:
        policy = self.chance.choice(_POLICIES)
        last = self.chance.choice(list(LastBatchPolicy))
        loader = self._loader(self.bad, last, on_bad_sample=policy)
        for _ in range(3):
            self._use(loader)
        self.events[f"pipelines with bad files, {policy}"] += 1

    def _callbacks(self) -> None:
        policy = self.chance.choice(_POLICIES)
        source = Source(self._seed())
        pipe = fed(source, seed=1, on_bad_sample=policy, **self.options)
        for _ in range(20):
            if not self._attempt(pipe.run):
                with contextlib.suppress(HeadraceError, MishapError):
                    pipe.reset()
        self.events["pipelines with callbacks"] += 1

    def _parallel_source(self) -> None:
        parallel: Any = True if self.options["workers"] == "processes" else "threads"
        if self.chance.random() < 0.3:
            parallel = True
        pipe = fed_in_parallel(parallel, py_start_method="spawn", **self.options)
        for _ in range(30):
            if not self._attempt(pipe.run):
                with contextlib.suppress(HeadraceError, MishapError):
                    pipe.reset()
        self.events["pipelines with parallel sources"] += 1
        if parallel is True and self.chance.random() < 0.3:
            for pid in pipe._py_pool.pids():
                self._kill(pid)
            self.events["processes of sources killed"] += 1
            self._attempt(pipe.run)

    def _built_and_dropped(self) -> None:
        for _ in range(self.chance.randrange(1, 4)):
            pipe = training(self.good, seed=self._seed(), **self.options)
            step = self.chance.randrange(3)
            if step:
                pipe.build()
            if step == 2:
                self._attempt(pipe.run)  # others are worked on when it is dropped
            self.events["pipelines dropped"] += 1


def settled() -> None:
    """Give back all memory that nobody uses."""
    import ctypes

    for _ in range(2):
        gc.collect()
    headrace.backend.ReleaseUnusedMemory()
    ctypes.CDLL(None).malloc_trim(0)
