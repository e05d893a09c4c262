"""Readers shuffle as DALI's do when only the pipeline has a seed, wherever they stand in the graph.

DALI hands out seeds derived from the pipeline's to its random operators and readers, numbered in
the order in which the outputs need them.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import LIBRARIES
from tests.support.images import encoded

FILES = 23


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    for k in range(FILES):
        (folder / f"{k}.jpg").write_bytes(encoded(9 + k, 12, seed=k).tobytes())
    return [str(folder / f"{k}.jpg") for k in range(FILES)]


class Graph:
    """What the cases below build graphs with."""

    def __init__(self, lib, files):
        self.fn, self.types, self.files = lib.fn, lib.types, files

    def reader(self, **arguments):
        return self.fn.readers.file(files=self.files, random_shuffle=True, **arguments)

    def label(self, **arguments):
        return self.reader(**arguments)[1]

    def number(self, label):
        return self.fn.cast(label[0], dtype=self.types.FLOAT) + 2


def one(g):
    return [g.label()], [0]


def two(g):
    return [g.label(), g.label()], [0, 1]


def returned_in_another_order(g):
    first, second = g.label(), g.label()
    return [second, first], [0, 1]


def read_by_an_expression(g):
    a, b, c = g.label(), g.label(), g.label()
    return [c + a, b, c, a], [1, 2, 3]


def behind_random_operators(g):
    u = g.fn.random.uniform()
    data, label = g.reader()
    image = g.fn.decoders.image_random_crop(data)
    other = g.label()
    return [u, g.fn.resize(image, size=[8, 8]), other, label], [2, 3]


def unused_random_operators_do_not_count(g):
    g.fn.random.uniform()
    g.reader()
    return [g.label()], [0]


def preserved_operators_come_last(g):
    g.fn.random.uniform(preserve=True)
    first = g.label()
    g.reader(preserve=True)
    return [g.label(), first], [0, 1]


def seeds_of_their_own_do_not_count(g):
    return [g.fn.random.uniform(seed=4), g.label(seed=5), g.label()], [1, 2]


def plain_readers_count(g):
    return [g.fn.readers.file(files=g.files)[1], g.label()], [0, 1]


def arguments_count_by_name(g):
    a, b, c = g.reader(), g.label(), g.label()
    image = g.fn.resize(
        g.fn.decoders.image(a[0]), resize_y=g.number(b), resize_x=g.number(c), min_filter=1
    )
    return [image, a[1], b, c], [1, 2, 3]


def inputs_count_before_arguments(g):
    a, b = g.reader(), g.label()
    image = g.fn.rotate(g.fn.decoders.image(a[0]), angle=g.number(b))
    return [image, b, a[1]], [1, 2]


def shards(g):
    return [g.label(shard_id=1, num_shards=2), g.label(pad_last_batch=True)], [0, 1]


GRAPHS = [
    one,
    two,
    returned_in_another_order,
    read_by_an_expression,
    behind_random_operators,
    unused_random_operators_do_not_count,
    preserved_operators_come_last,
    seeds_of_their_own_do_not_count,
    plain_readers_count,
    arguments_count_by_name,
    inputs_count_before_arguments,
    shards,
]


def orders(library, graph, files, seed):
    lib = LIBRARIES[library]
    pipe = lib.pipeline.Pipeline(8, 2, None, seed=seed)
    with pipe:
        outputs, labels = graph(Graph(lib, files))
        pipe.set_outputs(*outputs)
    pipe.build()
    return np.array(
        [[step[k].as_array().ravel() for k in labels] for step in (pipe.run() for _ in range(6))]
    )


@pytest.mark.parametrize("graph", GRAPHS, ids=lambda graph: graph.__name__)
def test_graphs(graph, files):
    expected = orders("dali", graph, files, 12)
    np.testing.assert_array_equal(orders("headrace", graph, files, 12), expected)


@pytest.mark.parametrize("seed", [0, 1, 2**31 - 1, 2**32 + 12, 2**63 - 1])
def test_seeds(seed, files):
    expected = orders("dali", two, files, seed)
    np.testing.assert_array_equal(orders("headrace", two, files, seed), expected)
