"""A training that is killed and started again sees what it would have seen without."""

from __future__ import annotations

import os
import re
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from tests.e2e.support import REPOSITORY, one_file_a_class, run_python

pytestmark = pytest.mark.skipif(os.name != "posix", reason="signals as of POSIX")

TRAINING = """
import itertools, os, signal, sys, zlib
from pathlib import Path
import numpy as np
from headrace import Pipeline, fn
from headrace.plugin.pytorch import DALIGenericIterator, LastBatchPolicy

root, folder, steps, kill_at = sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]), int(sys.argv[4])
threads, depth, shards = map(int, sys.argv[5:8])


class Noise:
    def __iter__(self):
        for k in itertools.count():
            yield np.full((4, 3), k, np.float32)


def make(shard):
    saved = folder / f"{shard}.checkpoint"
    pipe = Pipeline(
        4, threads, None, prefetch_queue_depth=depth, enable_checkpointing=True,
        checkpoint=saved.read_bytes() if saved.exists() else None,
    )
    with pipe:
        jpegs, labels = fn.readers.file(
            file_root=root, name="reader", random_shuffle=True, shard_id=shard, num_shards=shards,
        )
        images = fn.decoders.image_random_crop(jpegs)
        images = fn.resize(images, size=[16, 16])
        images = fn.crop_mirror_normalize(images, mirror=fn.random.coin_flip())
        pipe.set_outputs(images, labels, fn.external_source(Noise()))
    return pipe


loader = DALIGenericIterator(
    [make(shard) for shard in range(shards)], ["image", "label", "noise"], reader_name="reader",
    last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True,
)
done = folder / "steps"
step = len(done.read_text().splitlines()) if done.exists() else 0
while True:
    for batch in loader:
        if step == steps:
            sys.exit()
        shown = [
            (zlib.crc32(b["image"].numpy().tobytes()), b["label"].tolist(), b["noise"].max())
            for b in batch
        ]
        with done.open("a") as file:
            print(step, shown, file=file)
        for shard, data in enumerate(loader.checkpoints()):
            (folder / f"{shard}.checkpoint").write_bytes(data)
        step += 1
        if step == kill_at:
            os.kill(os.getpid(), signal.SIGKILL)
"""


def train(root: Path, folder: Path, kill_at: int, *engine: int) -> subprocess.CompletedProcess[str]:
    options = (str(root), str(folder), "16", str(kill_at), *map(str, engine))
    return run_python("-c", TRAINING, *options, check=False)


def test_killed_and_started_again(tmp_path: Path) -> None:
    shards = 2
    root = one_file_a_class(tmp_path / "images", 23)
    whole, parts = tmp_path / "whole", tmp_path / "parts"
    whole.mkdir()
    parts.mkdir()
    # Without a seed: that of the first run is in its checkpoint.
    first = train(root, parts, 1, 2, 2, shards)
    assert first.returncode == -signal.SIGKILL, first.stderr
    for path in parts.iterdir():
        (whole / path.name).write_bytes(path.read_bytes())
    assert train(root, whole, -1, 2, 2, shards).returncode == 0
    for kill_at, engine in ((7, (2, 4)), (-1, (1, 3))):
        result = train(root, parts, kill_at, *engine, shards)
        assert result.returncode == (-signal.SIGKILL if kill_at > 0 else 0), result.stderr
    assert (parts / "steps").read_text() == (whole / "steps").read_text()
    assert len((whole / "steps").read_text().splitlines()) == 16


def test_the_program_of_the_page(tmp_path: Path) -> None:
    page, *_ = re.findall(
        r"```python\n(.*?)```", (REPOSITORY / "docs" / "checkpointing.md").read_text(), re.DOTALL
    )
    one_file_a_class(tmp_path / "photos", 70)
    program = page.replace("batch_size=64", "batch_size=16").replace(
        "    SAVED.write", '    print(batch[0]["label"].ravel().tolist())\n    SAVED.write'
    )
    assert program.count("print") == 1

    def epoch(code: str) -> list[str]:
        result = subprocess.run(
            [sys.executable, "-W", "error", "-c", code],
            cwd=tmp_path,
            capture_output=True,
            text=True,
            check=True,
            timeout=100,
        )
        return result.stdout.splitlines()

    whole = epoch(program)
    assert len(whole) == 5
    (tmp_path / "latest.checkpoint").unlink()
    stopped = program.rstrip() + "\n    if batches._given == 2:\n        break\n"
    assert epoch(stopped) == whole[:2]
    assert epoch(program) == whole[2:]
