"""A program without mistakes: type checkers accept all of it, and it runs."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import assert_type

import numpy as np

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn, math, ops, pipeline_def, types
from headrace.data_node import DataNode
from headrace.pipeline import experimental


@pipeline_def(batch_size=2, num_threads=2, device_id=None, output_dtype=["uint8", np.int32])
def photographs(root: str | Path, size: int = 16) -> tuple[DataNode, DataNode]:
    encoded, labels = fn.readers.file(file_root=root, random_shuffle=True)
    images = fn.decoders.image(encoded, output_type=types.RGB)
    images = fn.resize(images, size=(size, size), interp_type=types.INTERP_LINEAR)
    images = fn.rotate(images, angle=fn.random.uniform(range=(-10.0, 10.0)), keep_size=True)
    images = fn.crop(images, crop=[8, 8], dtype=np.uint8)
    return fn.flip(images, horizontal=fn.random.coin_flip()), labels


@pipeline_def
def numbers():
    number = fn.random.uniform(range=[0.0, 1.0], dtype="float32", shape=(3,))
    doubled = assert_type(2 * number + number / 2 - np.ones(3), DataNode)
    in_range = assert_type((number > 0.5) & (number[0] <= 1), DataNode)
    return doubled, -math.sqrt(number), in_range, number[1:].cpu(), np.ones(3), 3.5


@pipeline_def(enable_conditionals=False)
def with_keywords(*, count: int = 3, offset: float):
    batch = fn.external_source(lambda info: np.full(count, info.idx_in_batch), batch=False)
    return fn.cast(batch, dtype=float) + offset


@pipeline_def
def lists():
    number = fn.random.uniform(shape=[4, 4, 3])
    one = assert_type(fn.resize(number, size=2), DataNode)
    first, second = assert_type(fn.resize(number, size=2, save_attrs=True), list[DataNode])
    left, right = assert_type(fn.resize([number, first], size=2), list[DataNode])
    grid = assert_type(fn.resize([one, left], size=2, save_attrs=True), list[list[DataNode]])
    known = [one, left]
    left, right = assert_type(fn.flip(known, horizontal=1), list[DataNode])
    assert_type(fn.flip(np.zeros((4, 4, 3), np.uint8)), DataNode)
    assert_type(fn.cat(one, np.ones((2, 2, 3), np.float32)), DataNode)
    assert_type(fn.stack([one, left], [left, one]), list[DataNode])
    assert_type(fn.random.normal(one), DataNode)
    assert_type(fn.random.normal(), DataNode)
    single = assert_type(fn.external_source(lambda: [np.ones(1)] * 2), DataNode)
    a, b = assert_type(fn.external_source(lambda: ([np.ones(1)] * 2,) * 2, 2), list[DataNode])
    c = assert_type(
        fn.external_source(source=lambda: ([np.ones(1)] * 2,), num_outputs=1), list[DataNode]
    )
    total = a + b + c[0] + single
    return second, right, *(edge for row in grid for edge in row), total


@pipeline_def
def clips(root: str):
    """How many outputs there are depends on more than flags."""
    video, label = fn.readers.video(file_root=root, sequence_length=4)
    only = fn.readers.video(filenames=["a.mp4"], sequence_length=4)
    return video, label, only


@pipeline_def
def instances():
    number = ops.random.Uniform(range=(0.0, 1.0), shape=(4, 4, 3))()
    flip = ops.Flip(horizontal=1)
    left, right = flip([number, number])
    return assert_type(flip(number, vertical=1), DataNode), left, right


@experimental.pipeline_def(debug=False, seed=3)
def experimental_definition(low: float):
    return fn.random.uniform(range=(low, 1.0))


class Defines:
    def __init__(self, scale: float) -> None:
        self.scale = scale

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline(self, offset: float):
        return fn.random.uniform() * self.scale + offset


def dynamic() -> None:
    images = ndd.batch([np.zeros((4, 4, 3), np.uint8)] * 2, layout="HWC")
    small = assert_type(ndd.resize(images, size=[2, 2]), ndd.Batch)
    small, attributes = ndd.resize(images, size=[2, 2], save_attrs=True)
    assert_type(ndd.cast(small, dtype="float32"), ndd.Batch)
    assert_type(attributes, ndd.Batch)
    assert ndd.tensor([1, 2], dtype=np.uint8).dtype == ndd.uint8
    image = ndd.tensor(np.zeros((4, 4, 3), np.uint8), layout="HWC")
    assert_type(ndd.rotate(image, angle=3.0), ndd.Tensor)
    assert_type(ndd.rotate(images, angle=3.0), ndd.Batch)
    angles = assert_type(ndd.random.uniform(range=[0, 1], batch_size=2), ndd.Batch)
    assert_type(ndd.rotate(image, angle=angles), ndd.Tensor | ndd.Batch)
    assert_type(ndd.cat(image, image), ndd.Tensor)
    assert_type(ndd.cat(images, image), ndd.Batch)


def main(root: str) -> None:
    """Make everything and run it."""
    assert_type(photographs(root), Pipeline).run()
    photographs(Path(root), size=9).run()
    photographs(root, 9, batch_size=3, prefetch_queue_depth=1).run()
    photographs(root=root, seed=3).run()
    settings = {"batch_size": 2, "num_threads": 1}
    numbers(batch_size=2, num_threads=1, device_id=None)
    numbers(**settings, device_id=None)
    with_keywords(count=2, offset=0.5, batch_size=2, num_threads=1, device_id=None).run()
    with_keywords(offset=0.5, batch_size=2, num_threads=1, device_id=None).run()
    lists(batch_size=2, num_threads=1, device_id=None).run()
    instances(batch_size=2, num_threads=1, device_id=None).run()
    experimental_definition(0.5, batch_size=2, num_threads=1, device_id=None).run()
    Defines(2.0).pipeline(0.5).run()
    Defines(2.0).pipeline(offset=0.5, batch_size=2).run()
    assert types.Constant(3, dtype=bool).dtype == types.BOOL
    dynamic()


if __name__ == "__main__":
    main(sys.argv[1])
