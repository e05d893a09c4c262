import itertools
import random

from headrace.cli.graph_layout import layout


def check(widths, edges, bands, gap=10.0):
    """Whatever the graph: edges go down, bands lie below one another, boxes do not touch."""
    found = layout(widths, edges, bands, gap)
    for begin, end in edges:
        assert found.boxes[begin].row < found.boxes[end].row
    for (k, one), (m, other) in itertools.combinations(enumerate(found.boxes), 2):
        if bands[k] < bands[m]:
            assert one.row < other.row
    for row in found.rows:
        for left, right in itertools.pairwise(row):
            assert left.x + left.width / 2 + gap <= right.x - right.width / 2 + 1e-6
        for box in row:
            assert box.x - box.width / 2 >= -1e-6
            assert box.x + box.width / 2 <= found.width + 1e-6
    for path in found.paths:
        assert [b.row for b in path] == list(range(path[0].row, path[-1].row + 1))
    return found


def test_a_chain_is_a_line():
    found = check([50, 80, 20], [(0, 1), (1, 2)], [0, 0, 0])
    assert len({round(box.x, 3) for box in found.boxes}) == 1
    assert found.width == 80


def test_crossings_are_undone():
    found = check([40] * 4, [(0, 3), (1, 2)], [0, 0, 0, 0])
    one, other, under_other, under_one = found.boxes
    assert (one.x < other.x) == (under_one.x < under_other.x)


def test_graphs_of_any_form():
    draw = random.Random(1)
    for _ in range(200):
        count = draw.randint(1, 14)
        bands = sorted(draw.randint(0, 3) for _ in range(count))
        edges = sorted(
            {
                tuple(sorted(draw.sample(range(count), 2)))
                for _ in range(draw.randint(0, 20) if count > 1 else 0)
            }
        )
        check([draw.uniform(20, 200) for _ in range(count)], edges, bands)


def test_nothing_has_no_width():
    assert layout([], [], [], 10).width == 0
