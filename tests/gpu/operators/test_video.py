"""Videos for a GPU: the CPU decodes, and frames are uploaded."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import errors, fn, pipeline_def
from tests.cases.data import VIDEOS

pytest.importorskip("av")

NAMES = [str(VIDEOS / "a.webm"), str(VIDEOS / "b.webm")]


def run(graph, device_id, **args):
    @pipeline_def(batch_size=3, num_threads=2, device_id=device_id, **args)
    def p():
        return graph("cpu" if device_id is None else "gpu")

    pipe = p()
    return [[np.array(sample.as_cpu()) for sample in out] for out in pipe.run()]


def read(reader, **args):
    return lambda device: tuple(
        reader(device=device, filenames=NAMES, labels=[], sequence_length=2, **args)
    )


GRAPHS = {
    "plain": read(fn.readers.video),
    "resized": read(fn.readers.video_resize, size=[20, 30]),
    "experimental": read(fn.experimental.readers.video, enable_timestamps=True),
    "whole": lambda device: decoded(device),
    "some": lambda device: decoded(device, frames=[0, 3, 9], pad_mode="edge"),
}


def decoded(device, **args):
    def source():
        return [np.fromfile(NAMES[k], np.uint8) for k in (0, 1, 0)]

    encoded = fn.external_source(source=source, batch=True)
    return fn.decoders.video(encoded, device={"gpu": "mixed"}.get(device, device), **args)


@pytest.mark.parametrize("name", GRAPHS)
def test_the_gpu_has_what_the_cpu_has(name):
    want = run(GRAPHS[name], None)
    got = run(GRAPHS[name], 0)
    assert len(want) == len(got)
    for a, b in zip(want, got, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)


def test_bad_samples():
    def graph(device):
        encoded = fn.external_source(source=lambda: [np.zeros(9, np.uint8)] * 3)
        return fn.decoders.video(encoded, device="mixed")

    with pytest.raises(errors.BadSampleError, match=r"(?s)cannot be opened.*sample 0"):
        run(graph, 0)


def test_a_video_that_is_fed():
    def frames(device_id, device):
        @pipeline_def(batch_size=2, num_threads=1, device_id=device_id, prefetch_queue_depth=1)
        def p():
            return fn.experimental.inputs.video(name="in", device=device, sequence_length=2)

        pipe = p()
        pipe.feed_input("in", [np.fromfile(NAMES[0], np.uint8)])
        return [np.array(s.as_cpu()) for _ in range(2) for s in pipe.run()[0]]

    want, got = frames(None, "cpu"), frames(0, "mixed")
    assert [len(frames) for frames in want] == [2, 2, 2, 1]
    for a, b in zip(want, got, strict=True):
        np.testing.assert_array_equal(a, b)


def test_what_is_fed_is_one_video():
    @pipeline_def(batch_size=2, num_threads=1, device_id=None)
    def p():
        return fn.experimental.inputs.video(name="in", sequence_length=2)

    pipe = p()
    with pytest.raises(errors.ShapeError, match="one video at a time"):
        pipe.feed_input("in", [np.zeros(4, np.uint8)] * 2)
    with pytest.raises(errors.DataTypeError, match="uint8"):
        pipe.feed_input("in", [np.zeros(4, np.float32)])
    pipe.feed_input("in", [np.zeros(4, np.uint8)])
    with pytest.raises(errors.BadSampleError, match="cannot be opened"):
        pipe.run()
