"""Where a graph is cut: by measured bytes and seconds, by rules, and by the user."""

from __future__ import annotations

import pytest

pytest.importorskip("ray")

from headrace import Pipeline, fn, types
from headrace.errors import ArgumentTypeError, ArgumentValueError, UnknownNameError
from headrace.plugin.ray.cut import BYTES_A_SECOND, Costs, choose, pinned, up_to
from headrace.plugin.ray.split import split

MB = 1e6


def chain():
    """Files, a decoder, a resize, a conversion to float; labels beside them."""
    pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        data, labels = fn.readers.file(files=["a", "b"], name="files")
        images = fn.decoders.image(data, name="decode")
        images = fn.resize(images, size=(2, 2), name="resize")
        images = fn.cast(images, dtype=types.FLOAT, name="float")
        pipe.set_outputs(images, labels)
    return by_name(pipe)


def by_name(pipe):
    nodes = pipe._define()
    return {node.name: node for node in nodes}, nodes, pipe._definition.outputs


def costs_of(nodes, **each):
    """Megabytes of the outputs of an operator, and milliseconds."""
    costs = Costs()
    for name, (sizes, milliseconds) in each.items():
        node = nodes[name]
        for k, size in enumerate(sizes):
            costs.bytes[id(node), k] = size * MB
        costs.seconds[id(node)] = milliseconds / 1e3
    return costs


def names(nodes, found):
    return {node.name for node in nodes if id(node) in found}


@pytest.mark.parametrize(
    ("decoded", "resized", "floats", "in_workers"),
    [
        # Megabytes and milliseconds. A conversion quadruples: the trainer does it.
        ((30, 100), (10, 40), (40, 4), {"files", "decode", "resize"}),
        # It costs the trainer more than the bytes that it saves.
        ((30, 100), (10, 40), (40, 90), {"files", "decode", "resize", "float"}),
        # A resize that makes images larger, and costs nearly nothing, waits for the trainer.
        ((10, 100), (30, 2), (120, 2), {"files", "decode"}),
        # A decoder never: encoded images are small, and it is what workers are there for.
        ((3, 100), (30, 2), (120, 2), {"files", "decode"}),
        # The same bytes everywhere: workers do all.
        ((10, 9), (10, 9), (10, 9), {"files", "decode", "resize", "float"}),
    ],
)
def test_least_bytes_behind_costly_operators(decoded, resized, floats, in_workers):
    nodes, order, outputs = chain()
    costs = costs_of(
        nodes,
        files=([2, 0.01], 1),
        decode=([decoded[0]], decoded[1]),
        resize=([resized[0]], resized[1]),
        float=([floats[0]], floats[1]),
    )
    found = choose(order, outputs, costs, pinned(order, functions_travel=False))
    assert names(order, found) == in_workers
    # Nothing else is cheaper: all cuts of the chain, one by one.
    chain_names = ["files", "decode", "resize", "float"]
    sizes = [2, decoded[0], resized[0], floats[0]]
    times = [1, decoded[1], resized[1], floats[1]]
    prices = [sizes[k] * MB + sum(times[k + 1 :]) / 1e3 * BYTES_A_SECOND for k in range(len(sizes))]
    best = min(prices)
    assert prices[len(in_workers) - 1] == best
    assert in_workers == set(chain_names[: len(in_workers)])


def test_split_has_every_operator_once_and_joins_up():
    nodes, order, outputs = chain()
    found = split(order, outputs, up_to(order, "resize", {}))
    assert [n.name for n in found.remote] == ["files", "decode", "resize"]
    assert [e.source.name for e in found.crossing] == ["resize", "files"]
    assert [n.name for n in found.rest if n.input_queue is None] == ["float"]
    (cast,) = [n for n in found.rest if n.input_queue is None]
    assert cast.inputs[0].source in found.rest
    assert all(edge.source in found.rest for edge in found.outputs)
    assert nodes["float"].inputs[0].source is nodes["resize"]  # the graph itself is as it was


def branches():
    pipe = Pipeline(batch_size=4, num_threads=1, device_id=None)
    with pipe:
        _, labels = fn.readers.file(files=["a", "b"], name="files")
        kept = fn.python_function(labels, function=lambda x: x, name="own")
        pipe.set_outputs(fn.cast(kept, dtype=types.FLOAT, name="after"), labels)
    return by_name(pipe)


def test_functions_of_the_program_and_what_follows_stay_unless_they_may_travel():
    _, order, outputs = branches()
    fixed = pinned(order, functions_travel=False)
    assert names(order, set(fixed)) == {"own", "after"}
    found = choose(order, outputs, Costs(), fixed)
    assert "own" not in names(order, found)
    assert "files" in names(order, found)
    assert not pinned(order, functions_travel=True)


@pytest.mark.parametrize(
    ("cut", "error", "text"),
    [
        ("resise", UnknownNameError, 'Did you mean "resize"'),
        (["decode", 3], ArgumentTypeError, "expected"),
        (7, ArgumentTypeError, "`cut` is 7"),
    ],
)
def test_wrong_cuts_are_named(cut, error, text):
    _, order, _ = chain()
    with pytest.raises(error, match=text):
        up_to(order, cut, {})


def test_cut_behind_what_cannot_travel_is_an_error():
    _, order, _ = branches()
    fixed = pinned(order, functions_travel=False)
    with pytest.raises(ArgumentValueError, match="calls a function of the program"):
        up_to(order, "own", fixed)
