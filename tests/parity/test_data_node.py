"""Edges of the graph beside DALI's: what they say of themselves, what Python may do with them."""

from __future__ import annotations

import collections.abc
import copy
import math
import re

import numpy as np
import pytest

from tests.parity.outcomes import Table, assert_differs, assert_same, attempt

BATCH = np.arange(12, dtype=np.int32).reshape(2, 2, 3)
IMAGES = np.arange(48, dtype=np.uint8).reshape(2, 4, 2, 3)


def feed(lib, data=BATCH, **keywords):
    return lib.fn.external_source(source=lambda: data, **keywords)


def graph(define, **keywords):
    """A scenario whose definition is ``define(lib, node)``."""
    return lambda lib: lib.pipe(lambda: define(lib, feed(lib, **keywords))).run()


def inside(define):
    """A scenario that gives what ``define(lib, node)`` gives inside of a definition."""

    def scenario(lib):
        with lib.Pipeline(batch_size=2, num_threads=1, device_id=None):
            return define(lib, feed(lib, name="here"))

    return scenario


def text(node):
    """Text of a node without the name of its operator, which DALI shows as an address."""
    return re.sub('source="[^"]*"', "source=...", str(node))


nodes = Table()

nodes(
    text=inside(lambda lib, x: text(x)),
    representation=inside(lambda lib, x: text(repr(x))),
    text_of_an_operator=inside(lambda lib, x: text(lib.fn.copy(x, name="c"))),
    text_of_one_of_two=inside(lambda lib, x: text(lib.fn.readers.file(files=["a"], name="r")[1])),
    text_of_a_sum=inside(lambda lib, x: text(x + 1)),
    attributes=inside(lambda lib, x: (x.name, x.device, x.index, x.ndim, x.dtype, x.layout)),
    attributes_of_one_of_two=inside(
        lambda lib, x: [
            (n.name, n.device, n.index) for n in lib.fn.readers.file(files=["a"], name="r")
        ]
    ),
    attributes_as_declared=inside(
        lambda lib, x: (
            n := feed(lib, layout="HW", ndim=2, dtype=lib.types.INT32),
            (n.ndim, n.dtype, n.layout),
        )[1]
    ),
    attributes_of_a_cast=inside(
        lambda lib, x: (n := lib.fn.cast(x, dtype=lib.types.FLOAT), (n.ndim, n.dtype))[1]
    ),
    attributes_of_a_constant=inside(
        lambda lib, x: (n := lib.fn.constant(idata=1), (n.ndim, n.dtype, n.layout))[1]
    ),
    source_is_set=inside(lambda lib, x: x.source is not None),
    constructor=lambda lib: str(lib.DataNode("n")),
    constructor_with_all=lambda lib: str(
        lib.DataNode("n", "gpu", None, 2, ndim=3, dtype=lib.types.UINT8, layout="HWC")
    ).replace("<DALIDataType.UINT8: 0>", "DALIDataType.UINT8"),
    constructor_without_a_name=lambda lib: lib.DataNode(),
    cpu_gives_itself=inside(lambda lib, x: x.cpu() is x),
    truth=inside(lambda lib, x: bool(x)),
    condition=inside(lambda lib, x: 1 if x else 2),
    conjunction=inside(lambda lib, x: x and 1),
    negation=inside(lambda lib, x: not x),
    chain=inside(lambda lib, x: 0 < x < 3),
    length=inside(lambda lib, x: len(x)),
    is_iterable=inside(lambda lib, x: isinstance(x, collections.abc.Iterable)),
    iterator=inside(lambda lib, x: iter(x)),
    unpacked=inside(lambda lib, x: max(*x)),
    iteration=inside(lambda lib, x: list(x)),
    unpacking=inside(lambda lib, x: [a for a, b in [x]]),
    star=inside(lambda lib, x: [*x]),
    membership=inside(lambda lib, x: 1 in x),
    to_float=inside(lambda lib, x: float(x)),
    to_int=inside(lambda lib, x: int(x)),
    to_index=inside(lambda lib, x: [1, 2][x]),
    to_complex=inside(lambda lib, x: complex(x)),
    rounding=inside(lambda lib, x: round(x)),
    flooring=inside(lambda lib, x: math.floor(x)),
    truncation=inside(lambda lib, x: math.trunc(x)),
    python_sqrt=inside(lambda lib, x: math.sqrt(x)),
    python_range=inside(lambda lib, x: range(x)),
    divmod_=inside(lambda lib, x: divmod(x, 2)),
    matmul=inside(lambda lib, x: x @ x),
    hashing=inside(lambda lib, x: hash(x)),
    in_a_set=inside(lambda lib, x: {x}),
    as_a_key=inside(lambda lib, x: {x: 1}),
    in_a_list=inside(lambda lib, x: x in [x]),
    formatted=inside(lambda lib, x: text(f"{x}")),
    formatted_with_a_width=inside(lambda lib, x: f"{x:5}"),
    assigned_to=inside(lambda lib, x: x.__setitem__(0, 1)),
    deleted_from=inside(lambda lib, x: x.__delitem__(0)),
    called=inside(lambda lib, x: x()),
    unknown_attribute=inside(lambda lib, x: x.nonsense),
    sum_of_nodes=graph(lambda lib, x: sum([x, x, x])),
    copied=graph(lambda lib, x: copy.copy(x)),
    numpy_on_the_left=graph(lambda lib, x: np.float32(2) * x),
    numpy_function=inside(lambda lib, x: np.sqrt(x)),
    max_of_nodes=inside(lambda lib, x: max(x, x)),
    sorted_nodes=inside(lambda lib, x: sorted([x, x])),
    # shape, properties
    shape=graph(lambda lib, x: x.shape()),
    shape_float=graph(lambda lib, x: x.shape(dtype=lib.types.FLOAT)),
    shape_int32=graph(lambda lib, x: x.shape(dtype=lib.types.INT32)),
    shape_bool=graph(lambda lib, x: x.shape(dtype=lib.types.BOOL)),
    shape_positional=graph(lambda lib, x: x.shape(lib.types.FLOAT)),
    shape_device=graph(lambda lib, x: x.shape(device="cpu")),
    shape_device_unknown=graph(lambda lib, x: x.shape(device="tpu")),
    shape_of_a_scalar=graph(lambda lib, x: x[0, 0].shape()),
    shape_of_a_shape=graph(lambda lib, x: x.shape().shape()),
    shape_unknown_argument=graph(lambda lib, x: x.shape(foo=1)),
    property_layout=graph(lambda lib, x: x.property("layout"), layout="HW"),
    property_layout_missing=graph(lambda lib, x: x.property("layout")),
    property_source_info=graph(lambda lib, x: x.property("source_info")),
    property_by_name=graph(lambda lib, x: x.property(key="layout"), layout="HW"),
    property_unknown=graph(lambda lib, x: x.property("foo")),
    source_info=graph(lambda lib, x: x.source_info()),
    property_device=graph(lambda lib, x: x.property("layout", device="cpu"), layout="HW"),
    # new axes
    newaxis_first=graph(lambda lib, x: x[lib.newaxis], layout="HW"),
    newaxis_named_first=graph(lambda lib, x: x[lib.newaxis("F")], layout="HW"),
    newaxis_last=graph(lambda lib, x: x[:, :, lib.newaxis], layout="HW"),
    newaxis_named_last=graph(lambda lib, x: x[:, :, lib.newaxis("C")], layout="HW"),
    newaxis_between=graph(lambda lib, x: x[:, lib.newaxis("Z"), :], layout="HW"),
    newaxis_and_an_index=graph(lambda lib, x: x[0, lib.newaxis("Z")], layout="HW"),
    newaxis_before_an_index=graph(lambda lib, x: x[lib.newaxis("Z"), 0], layout="HW"),
    newaxis_and_a_slice=graph(lambda lib, x: x[1:, lib.newaxis("Z"), ::2], layout="HW"),
    newaxis_twice=graph(lambda lib, x: x[lib.newaxis("A"), :, lib.newaxis("B")], layout="HW"),
    newaxis_twice_in_a_row=graph(lambda lib, x: x[lib.newaxis, lib.newaxis], layout="HW"),
    newaxis_without_layout=graph(lambda lib, x: x[lib.newaxis]),
    newaxis_named_without_layout=graph(lambda lib, x: x[lib.newaxis("N")]),
    newaxis_named_and_not=graph(lambda lib, x: x[lib.newaxis("A"), lib.newaxis]),
    newaxis_long_name=lambda lib: lib.newaxis("AB"),
    newaxis_empty_name=lambda lib: lib.newaxis(""),
    newaxis_number=lambda lib: lib.newaxis(3),
    newaxis_name_taken=graph(lambda lib, x: x[lib.newaxis("H")], layout="HW"),
    newaxis_everywhere=graph(
        lambda lib, x: x[lib.newaxis("A"), :, lib.newaxis("B"), :, lib.newaxis("C")], layout="HW"
    ),
    newaxis_name=lambda lib: (lib.newaxis.name, lib.newaxis("N").name, lib.newaxis("N")("M").name),
)


@nodes
def source_info_of_a_reader(lib):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        for k in range(3):
            Path(folder, f"{k}.bin").write_bytes(bytes(range(k + 1)))

        def define():
            data, _ = lib.fn.readers.file(
                file_root=folder, files=[f"{k}.bin" for k in range(3)], name="r"
            )
            return data.source_info(), lib.fn.copy(data).source_info(), data[:1].source_info()

        return lib.pipe(define, 3).run()


@nodes
def in_place_addition(lib):
    def define():
        x = feed(lib)
        y = x
        x += 1
        return x, y

    return lib.pipe(define).run()


@nodes
def errors_name_the_line_of_the_user(lib):
    error = attempt(inside(lambda lib, x: bool(x)), lib)
    return lib.name == "dali" or __file__ in str(error)


@pytest.mark.parametrize("name", nodes)
def test_nodes(name):
    assert_same(nodes[name])


def source_of_a_label(lib):
    import tempfile
    from pathlib import Path

    with tempfile.TemporaryDirectory() as folder:
        Path(folder, "0.bin").write_bytes(b"a")
        pipe = lib.pipe(
            lambda: lib.fn.readers.file(file_root=folder, files=["0.bin"])[1].source_info(), 1
        )
        return bytes(np.asarray(pipe.run()[0].at(0))).decode()


# Scenario, what DALI does, what Headrace does.
DIFFERENT = {
    "array_of_a_node": (inside(lambda lib, x: np.asarray(x).dtype.kind), "O", TypeError),
    "key_of_another_type": (
        graph(lambda lib, x: x.property(3)),
        RuntimeError,
        TypeError,
    ),
    "source_info_of_a_label": (source_of_a_label, "", "0.bin"),
}


@pytest.mark.parametrize("name", DIFFERENT)
def test_deliberate_differences(name):
    assert_differs(*DIFFERENT[name])
