"""Videos in dynamic mode."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import fn, pipeline_def
from tests.cases.data import VIDEOS

pytest.importorskip("av")

NAMES = [str(VIDEOS / "a.webm"), str(VIDEOS / "b.webm")]


def test_readers_give_what_pipelines_do():
    @pipeline_def(batch_size=3, num_threads=1, device_id=None)
    def p():
        return tuple(fn.readers.video(filenames=NAMES, labels=[4, 5], sequence_length=2))

    want = p().run()
    reader = ndd.readers.Video(filenames=NAMES, labels=[4, 5], sequence_length=2)
    video, labels = next(iter(reader.next_epoch(batch_size=3)))
    for got, wanted in ((video, want[0]), (labels, want[1])):
        for a, b in zip(got, wanted, strict=True):
            np.testing.assert_array_equal(np.array(a), np.array(b))


def test_every_reader():
    for reader in (ndd.readers.VideoResize, ndd.experimental.readers.Video):
        args = {"size": (10, 12)} if reader is ndd.readers.VideoResize else {}
        found = next(iter(reader(filenames=NAMES, sequence_length=2, **args).next_epoch()))
        assert np.array(found)[0].shape == (2, *args.get("size", (36, 48)), 3)


def test_decoding():
    encoded = ndd.tensor(np.fromfile(NAMES[0], np.uint8))
    frames = ndd.decoders.video(encoded, start_frame=2, sequence_length=3)
    assert np.array(frames).shape == (3, 36, 48, 3)
