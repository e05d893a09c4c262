"""Ctrl-C: it ends a program at once, and a program that catches it goes on with a whole epoch."""

from __future__ import annotations

import os
import signal
import subprocess
import sys

import pytest

from tests.e2e.support import REPOSITORY, one_file_a_class, run_python

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as of POSIX")

LOADER = """
import random, signal, sys
from headrace import Pipeline, fn
from headrace.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

def make(root, shards, threads, depth, auto_reset=False):
    pipelines = []
    for shard in range(shards):
        pipe = Pipeline(4, threads, None, seed=5, prefetch_queue_depth=depth)
        with pipe:
            jpegs, labels = fn.readers.file(
                file_root=root, name="reader", random_shuffle=True, pad_last_batch=True,
                shard_id=shard, num_shards=shards,
            )
            pipe.set_outputs(fn.resize(fn.decoders.image(jpegs), size=[16, 16]), labels)
        pipelines.append(pipe)
    return DALIGenericIterator(
        pipelines, ["image", "label"], reader_name="reader", auto_reset=auto_reset,
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )
"""

ENDLESS = """
loader = make(sys.argv[1], 1, 2, 2)
shown = 0
while True:
    for batch in loader:
        shown += 1
        if shown == 20:
            print("running", flush=True)
"""

WAITING = """
import threading
import headrace.pipeline.pipeline
from headrace.operators import Input, operator

headrace.pipeline.pipeline.EXIT_SECONDS = 0.2

@operator("testing.wait_for_ever", inputs=Input(), hidden=True)
def wait_for_ever(xp, x):
    print("running", flush=True)
    threading.Event().wait()

pipe = Pipeline(1, 2, None, prefetch_queue_depth=1)
with pipe:
    pipe.set_outputs(fn.testing.wait_for_ever(fn.external_source(source=lambda: [[1.0]])))
pipe.run()
"""


@pytest.fixture(scope="module")
def root(tmp_path_factory):
    return str(one_file_a_class(tmp_path_factory.mktemp("files"), 23, height=20, width=20))


@pytest.mark.parametrize("program", [ENDLESS, WAITING], ids=["in a loop", "at an operator"])
def test_it_ends_the_program(program, root):
    command = [sys.executable, "-c", LOADER + program, root]
    pipe = subprocess.PIPE
    with subprocess.Popen(command, cwd=REPOSITORY, stdout=pipe, stderr=pipe, text=True) as process:
        assert process.stdout is not None
        first_line = process.stdout.readline()
        process.send_signal(signal.SIGINT)
        try:
            _, errors = process.communicate(timeout=60)
        finally:
            process.kill()
    assert first_line == "running\n", errors
    assert process.returncode == -signal.SIGINT
    assert errors.rstrip().endswith("KeyboardInterrupt")
    assert "Exception ignored" not in errors
    assert "Fatal" not in errors


MANY = """
def interrupt(number, frame):
    raise KeyboardInterrupt

signal.signal(signal.SIGALRM, interrupt)
rng = random.Random(1)
interrupted = 0
for number, (shards, threads, depth, auto_reset) in enumerate(
    [(1, 2, 2, False), (1, 1, 1, True), (2, 1, 2, True), (3, 2, 1, False)]
):
    loader = make(sys.argv[1], shards, threads, depth, auto_reset)
    list(loader)
    for round in range(40):
        try:
            signal.setitimer(signal.ITIMER_REAL, rng.uniform(0.0002, 0.006))
            while True:
                for batch in loader:
                    pass
        except KeyboardInterrupt:
            interrupted += 1
        for epoch in range(2):
            labels = []
            for step in loader:
                for part in step:
                    labels += part["label"].flatten().tolist()
            assert sorted(labels) == list(range(23)), (number, round, epoch, sorted(labels))
print(interrupted)
"""


def test_the_next_loop_is_a_whole_epoch(root):
    assert run_python("-c", LOADER + MANY, root).stdout == "160\n"
