"""Random graphs with random branches, or with everything computed for all samples and selected."""

from __future__ import annotations

import itertools

import numpy as np
from hypothesis import strategies as st

from headrace import fn, pipeline_def, types
from headrace.graph.branches import guarded, merge

SIZE = 5


class Graph:
    """A random graph of images and predicates, with branches or without."""

    def __init__(self, draw, branches):
        self.draw = draw
        self.branches = branches
        self.seeds = itertools.count(11)  # what numbers draws get depends on what else is read

    def uniform(self, *like, high=1.0):
        """Draws of a seed of their own."""
        return fn.random.uniform(*like, range=[0.0, high], seed=next(self.seeds))

    def predicate(self, images, label):
        """A number for each sample, known early or late."""
        kind = self.draw(st.sampled_from(["label", "draw", "shape", "pixel", "constant", "drawn"]))
        if kind == "label":
            return (label >> self.draw(st.integers(0, 2))) & 1
        if kind == "draw":
            return fn.random.coin_flip(dtype=types.BOOL, seed=next(self.seeds))
        if kind == "shape":
            return images.shape()[1] > 4
        if kind == "pixel":
            return fn.cast(images[0, 0, 0], dtype=types.INT32).cpu() % 3
        if kind == "drawn":
            return self.uniform() * 2 > fn.cast(label, dtype=types.FLOAT) / 4
        return label >= 0

    def step(self, images, label):
        """One operator that leaves uint8 images."""
        kind = self.draw(
            st.sampled_from(["flip", "add", "crop", "uniform", "twist", "fliplr", "cast"])
        )
        if kind == "flip":
            return fn.flip(images, vertical=1)
        if kind == "fliplr":
            return fn.flip(images, horizontal=fn.random.coin_flip(seed=next(self.seeds)))
        if kind == "add":
            return fn.cast(images * 3 + label, dtype=types.UINT8)
        if kind == "crop":
            return fn.crop(images, crop=(3, 3), crop_pos_x=self.uniform())
        if kind == "uniform":
            return fn.cast(images * 0 + self.uniform(images, high=99.0), dtype=types.UINT8)
        if kind == "twist":
            return fn.brightness(images, brightness=1.5)
        return fn.cast(fn.cast(images, dtype=types.FLOAT) / 2, dtype=types.UINT8)

    def chain(self, images, label, depth):
        """Some operators, maybe with branches."""
        for _ in range(self.draw(st.integers(1, 2))):
            if depth and self.draw(st.booleans()):
                images = self.branch(images, label, depth)
            else:
                images = self.step(images, label)
        return images

    def branch(self, images, label, depth):
        """Two branches, of which one may do nothing."""
        predicate = self.predicate(images, label)
        if not self.branches:
            if_true = self.chain(images, label, depth - 1)
            if_false = images if self.draw(st.booleans()) else self.chain(images, label, depth - 1)
            return merge(predicate, if_true, if_false)
        with guarded(predicate):
            if_true = self.chain(images, label, depth - 1)
        with guarded(predicate, holds=False):
            if_false = images if self.draw(st.booleans()) else self.chain(images, label, depth - 1)
        return merge(predicate, if_true, if_false)


def batches():
    rng = np.random.default_rng(5)
    for _ in range(3):
        yield (
            [rng.integers(0, 255, (4, 3 + k % 3, 3), np.uint8) for k in range(SIZE)],
            np.arange(SIZE, dtype=np.int32),
        )


def run(data, choices, *, branches, threads, fuse, device="cpu"):
    """All outputs of some iterations of the graph that `choices` stand for."""
    played = iter(choices)

    def draw(strategy):
        try:
            return next(played)
        except StopIteration:
            value = data.draw(strategy)
            choices.append(value)
            return value

    @pipeline_def(
        batch_size=SIZE, num_threads=threads, device_id=0 if device == "gpu" else None, seed=7
    )
    def pipe():
        images, label = fn.external_source(
            batches, num_outputs=2, cycle=True, layout=["HWC", ""], batch=True
        )
        graph = Graph(draw, branches)
        if device == "gpu":
            images = images.gpu()
        out = graph.chain(images, label, 2)
        return out, fn.crop(out, crop=(2, 2)), label

    made = pipe(fuse=fuse)
    found = []
    for _ in range(3):
        outputs = made.run()
        found.append([np.array(s) for o in outputs for s in (o.as_cpu() if device == "gpu" else o)])
    return found


def check_equal(one, other):
    for a, b in zip(one, other, strict=True):
        for x, y in zip(a, b, strict=True):
            np.testing.assert_array_equal(x, y)
