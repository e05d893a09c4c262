"""Whatever samples fail, and wherever: all rows of a sample belong to one source."""

from __future__ import annotations

from typing import NamedTuple

import hypothesis.strategies as st
import numpy as np
from hypothesis import given

import tests.support.counting_reader
from headrace import errors, fn, pipeline_def, types
from headrace.operators import BatchOperator, Input, SampleOperator, Spec, operator
from headrace.operators.support.argument_types import IntArg, IntListArg
from headrace.operators.support.schema import Arg

assert tests.support.counting_reader

SIZE = 4
ITERATIONS = 2


def painting(number: int) -> np.ndarray:
    """An image that no other number has; some are of another shape."""
    shape = (6, 8 + number % 2, 1)
    return (np.arange(np.prod(shape)).reshape(shape) + 3 * number).astype(np.uint8)


@operator("testing.paint", inputs=Input(), hidden=True)
class Paint(SampleOperator):
    """Make the image of a number."""

    def infer(self, number):
        return Spec(types.UINT8, 3, "HWC")

    def cpu(self, c, number):
        image = painting(int(number))
        out = c.empty(image.shape, np.uint8)
        out[...] = image
        return out


@operator(
    "testing.refuse_some",
    inputs=(Input("value"), Input("number")),
    args=(Arg("bad", IntListArg, (), "Numbers to fail on."),),
    hidden=True,
)
class RefuseSome(SampleOperator):
    """Hand on what comes with a good number."""

    def infer(self, value, number):
        return value

    def cpu(self, c, value, number):
        if int(number) in c.args.bad:
            raise errors.BadSampleError(f"{int(number)} is bad")
        return value


@operator(
    "testing.rotate_batch",
    inputs=Input(),
    args=(Arg("by", IntArg, 1, "How many samples further on each comes from."),),
    hidden=True,
)
class RotateBatch(BatchOperator):
    """Put samples into the places of others, as they are."""

    def infer(self, value):
        return value

    def cpu(self, c, samples):
        by = c.values("by")[0]
        return [samples[(k + by) % len(samples)] for k in range(len(samples))]


class Node(NamedTuple):
    """An operator of a graph: what it does, to which earlier nodes, with what number."""

    kind: str
    inputs: tuple[int, ...] = ()
    number: int = 0


IMAGE_KINDS = ("flip", "flip_some", "crop", "reshape", "refuse", "rotate", "pad", "add")
NUMBER_KINDS = ("add", "refuse", "rotate", "read")


@st.composite
def graphs(draw):
    """Nodes; the first three are the images, their numbers, and what is drawn."""
    nodes = [Node("images"), Node("numbers"), Node("draw")]
    images, numbers = [0], [1]
    for _ in range(draw(st.integers(1, 7))):
        number = draw(st.sampled_from(numbers))
        if draw(st.booleans()):
            kind, value, same = draw(st.sampled_from(IMAGE_KINDS)), images, images
        else:
            kind, value, same = draw(st.sampled_from(NUMBER_KINDS)), numbers, numbers
        value = draw(st.sampled_from(value))
        # What comes of a sum tells no number any more.
        if same is numbers and kind in ("add", "read"):
            same = []
        inputs = (value, number) if kind == "refuse" else (value,)
        same.append(len(nodes))
        nodes.append(Node(kind, inputs, draw(st.integers(1, SIZE - 1))))
    return nodes


def built(nodes, bad, images, numbers):
    """The edges of a graph."""
    edges = [images, numbers, fn.random.uniform(range=(0, 1))]
    for node in nodes[3:]:
        x = edges[node.inputs[0]]
        if node.kind == "flip":
            x = fn.flip(x, horizontal=1)
        elif node.kind == "flip_some":
            x = fn.flip(x, horizontal=edges[1] % 2)
        elif node.kind == "crop":
            x = fn.crop(x, crop=(5, 6), crop_pos_x=0, crop_pos_y=0)
        elif node.kind == "reshape":
            x = fn.reshape(x, layout="HWC", src_dims=[0, 1, 2])
        elif node.kind == "refuse":
            x = fn.testing.refuse_some(x, edges[node.inputs[1]], bad=list(bad))
        elif node.kind == "rotate":
            x = fn.testing.rotate_batch(x, by=node.number)
        elif node.kind == "pad":
            x = fn.pad(x)
        elif node.kind == "read":
            x = fn.cast(x, dtype=types.FLOAT) + edges[2]
        else:
            x = x + x
        edges.append(x)
    return edges


def modelled(nodes, numbers, draws, source):
    """What a graph gives where sample k is that of place ``source[k]``.

    `numbers`, `draws`: what each place holds.
    """
    values = [[painting(n) for n in numbers], numbers, draws]
    for node in nodes[3:]:
        x = values[node.inputs[0]]
        if node.kind == "flip":
            x = [v[:, ::-1] for v in x]
        elif node.kind == "flip_some":
            x = [v[:, ::-1] if n % 2 else v for v, n in zip(x, numbers, strict=True)]
        elif node.kind == "crop":
            x = [v[:5, :6] for v in x]
        elif node.kind == "rotate":
            x = [x[source[(k + node.number) % len(x)]] for k in range(len(x))]
        elif node.kind == "pad":
            shape = np.max([x[k].shape for k in source], axis=0)
            x = [
                np.pad(v, [(0, max(s - n, 0)) for s, n in zip(shape, v.shape, strict=True)])
                for v in x
            ]
        elif node.kind == "read":
            x = [np.float32(v) + d for v, d in zip(x, draws, strict=True)]
        elif node.kind == "add":
            x = [v + v for v in x]
        values.append(x)
    return [[v[k] for k in source] for v in values]


def run(nodes, policy, bad, *, reads, **keywords):
    """The outputs of some iterations; the error of the first that fails in place of it."""
    feed = [
        [np.int32(k) for k in range(first, first + SIZE)]
        for first in range(0, ITERATIONS * SIZE, SIZE)
    ]

    @pipeline_def(batch_size=SIZE, device_id=None, seed=11, on_bad_sample=policy)
    def p():
        if reads:
            numbers = fn.testing.counting_reader(count=3 * SIZE, bad=list(bad[:2]))
            images = fn.testing.paint(numbers)
        else:
            batches = [([painting(int(k)) for k in batch], batch) for batch in feed]
            images, numbers = fn.external_source(batches, num_outputs=2, layout=["HWC", None])
        return tuple(built(nodes, bad, images, numbers))

    pipe = p(**keywords)
    found = []
    for _ in range(ITERATIONS):
        try:
            found.append([[np.array(v) for v in out] for out in pipe.run()])
        except errors.HeadraceError as error:
            found.append(error)
    return found


@given(
    graphs(),
    st.sampled_from(["raise", "skip", "replace"]),
    st.lists(st.integers(0, 2 * SIZE - 1), max_size=5, unique=True),
    st.booleans(),
    st.integers(1, 3),
    st.booleans(),
)
def test_all_rows_of_a_sample_belong_to_one_source(nodes, policy, bad, reads, threads, fuse):
    draws_only = run(nodes, "raise", [], reads=reads, num_threads=1)
    found = run(nodes, policy, bad, reads=reads, num_threads=threads, fuse=fuse)
    refused = any(node.kind == "refuse" for node in nodes)
    # A number that comes to another place may make that fail, too, until none is left.
    may_spread = any(node.kind == "rotate" for node in nodes)
    for number, (outputs, whole) in enumerate(zip(found, draws_only, strict=True)):
        places = range(number * SIZE, (number + 1) * SIZE)
        failing = set(bad) & set(places) if refused else set(bad[:2]) & set(places) if reads else ()
        if isinstance(outputs, BaseException):
            assert bad
            if policy == "replace":
                assert may_spread or (len(failing) == SIZE and not reads)
            continue
        draws = whole[2]
        source = [draws.index(d) for d in outputs[2]]
        if policy != "replace":
            assert source == list(range(SIZE))
        elif not may_spread and len(failing) < SIZE:
            bad_places = {k - places[0] for k in failing}
            assert all((source[k] == k) == (k not in bad_places) for k in range(SIZE))
        numbers = list(whole[1])
        for k, place in enumerate(source):
            numbers[place] = outputs[1][k]
        never = bad if refused and not may_spread else bad[:2] if reads else []
        assert not {int(n) for n in outputs[1]} & set(never)
        expected = modelled(nodes, numbers, draws, source)
        for node, rows, values in zip(nodes, outputs, expected, strict=True):
            for k, (row, value) in enumerate(zip(rows, values, strict=True)):
                np.testing.assert_array_equal(row, value, err_msg=f"{node} of sample {k}")
