"""Where operators may be put and what they take there: definitions with a GPU, which need none.

DALI finds out about its GPU only when a pipeline is built; Headrace's is the emulated one.
"""

from __future__ import annotations

import numpy as np
import nvidia.dali
import pytest
from nvidia.dali import fn as dali_fn
from nvidia.dali import types as dali_types

import headrace
from headrace.tensors.gpu.runtime import install_runtime
from tests.support.gpu.runtime import EmulatedRuntime


@pytest.fixture(autouse=True)
def gpu():
    runtime = EmulatedRuntime(0)
    install_runtime(lambda device_id: runtime)
    yield
    install_runtime(None)


DEFINITIONS = {
    "cpu input of a gpu operator": lambda fn, types, x: fn.resize(x, device="gpu", size=(3, 3)),
    "gpu by its input": lambda fn, types, x: fn.resize(x.gpu(), size=(3, 3)),
    "gpu input of a cpu operator": lambda fn, types, x: fn.resize(
        x.gpu(), device="cpu", size=(3, 3)
    ),
    "anchors on the gpu": lambda fn, types, x: fn.slice(x.gpu(), x.gpu(), x),
    "anchors on the cpu": lambda fn, types, x: fn.slice(x.gpu(), x, x),
    "argument on the gpu": lambda fn, types, x: fn.resize(
        x.gpu(), size=fn.random.uniform(device="gpu")
    ),
    "gpu and back": lambda fn, types, x: x.gpu().cpu(),
    "cpu of cpu": lambda fn, types, x: x.cpu(),
    "gpu of gpu": lambda fn, types, x: x.gpu().gpu(),
    "arithmetic of both": lambda fn, types, x: x.gpu() + x,
    "arithmetic with a number": lambda fn, types, x: x.gpu() * 3,
    "shape on the cpu": lambda fn, types, x: x.gpu().shape(),
    "shape on the gpu": lambda fn, types, x: x.gpu().shape(device="gpu"),
    "property": lambda fn, types, x: x.gpu().source_info(),
    "subscript": lambda fn, types, x: x.gpu()[1],
    "subscript by data": lambda fn, types, x: x.gpu()[x],
    "mixed decoder": lambda fn, types, x: fn.decoders.image(x, device="mixed"),
    "mixed decoder of gpu data": lambda fn, types, x: fn.decoders.image(x.gpu(), device="mixed"),
    "mixed decoder by its input": lambda fn, types, x: fn.decoders.image(x.gpu()),
    "decoder on the gpu": lambda fn, types, x: fn.decoders.image(x, device="gpu"),
    "constant": lambda fn, types, x: types.Constant(3, device="gpu"),
    "constant operator": lambda fn, types, x: fn.constant(idata=[3], device="gpu"),
    "cast like cpu data": lambda fn, types, x: fn.cast_like(x.gpu(), x),
    "cast like gpu data": lambda fn, types, x: fn.cast_like(x.gpu(), x.gpu()),
    "shape of reshape on the cpu": lambda fn, types, x: fn.reshape(x.gpu(), x),
    "array for a gpu operator": lambda fn, types, x: fn.cast(
        np.float32([1, 2]), dtype=types.UINT8, device="gpu"
    ),
    "per_frame": lambda fn, types, x: fn.per_frame(x, device="gpu"),
    "peek on the gpu": lambda fn, types, x: fn.peek_image_shape(x, device="gpu"),
    "no such device": lambda fn, types, x: fn.copy(x, device="tpu"),
    "full on the gpu": lambda fn, types, x: fn.full(1, shape=[2], device="gpu"),
    "uniform on the gpu": lambda fn, types, x: fn.random.uniform(device="gpu"),
    "uniform like gpu data": lambda fn, types, x: fn.random.uniform(x.gpu()),
    "several inputs": lambda fn, types, x: fn.copy([x.gpu(), x.gpu()]),
    "fed on the gpu": lambda fn, types, x: fn.external_source(name="y", device="gpu"),
    "normalize by batch": lambda fn, types, x: fn.normalize(x.gpu(), batch=True),
    "mean on the gpu": lambda fn, types, x: fn.normalize(x.gpu(), mean=x.gpu()),
}


EARLIER = {"mixed decoder by its input", "full on the gpu"}
"""There is no such operator, which DALI says when the pipeline is built."""


def outcome(library, fn, types, define):
    pipe = library.Pipeline(4, 2, 0)
    with pipe:
        x = fn.external_source(name="x")
        try:
            found = define(fn, types, x)
        except Exception as error:
            return "error", error
    found = found if isinstance(found, (list, tuple)) else [found]
    return "edges", [edge.device for edge in found]


@pytest.mark.parametrize("case", DEFINITIONS)
def test_definition(case):
    define = DEFINITIONS[case]
    expected = outcome(nvidia.dali, dali_fn, dali_types, define)
    got = outcome(headrace, headrace.fn, headrace.types, define)
    if case in EARLIER:
        assert expected == ("edges", ["gpu"])
        assert got[0] == "error"
        assert "variant" in str(got[1])
    elif expected[0] == "error":
        assert got[0] == "error", f"DALI: {expected[1]!r}"
        builtin = next(c for c in type(expected[1]).__mro__ if c.__module__ == "builtins")
        assert isinstance(got[1], builtin), f"DALI: {expected[1]!r}, Headrace: {got[1]!r}"
    else:
        assert got == expected
