"""`jax_function` beside DALI's, on the CPU: values, types, layouts, errors."""

from __future__ import annotations

import jax
import jax.numpy as jnp
import numpy as np
import nvidia.dali as dali
import pytest
from nvidia.dali.plugin import jax as dali_jax

import headrace
from headrace.plugin import jax as headrace_jax

LIBRARIES = {"dali": (dali, dali_jax), "headrace": (headrace, headrace_jax)}
DATA = np.random.default_rng(0).integers(0, 100, (4, 3, 2), np.uint8)


def run(library, function, *, data=DATA, layout="AB", inputs=1, count=1, **options):
    """Content, type and layout of each output of the function, in the second iteration."""
    lib, plugin = LIBRARIES[library]

    @lib.pipeline_def(batch_size=len(data), num_threads=2, device_id=None)
    def pipe():
        edges = [lib.fn.external_source(source=lambda: data, layout=layout) for _ in range(inputs)]
        found = plugin.fn.jax_function(function, num_outputs=count, **options)(*edges)
        return tuple(found) if count > 1 else found

    made = pipe()
    made.build()
    made.run()
    return [
        (batch.as_array().tolist(), int(batch.dtype), batch.layout(), batch.shape())
        for batch in made.run()
    ]


def both(*arguments, **options):
    return [run(library, *arguments, **options) for library in LIBRARIES]


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (lambda x: x, {}),
        (lambda x: x[:, ::-1], {}),
        (jax.jit(lambda x: x * 2), {}),
        (jax.jit(jax.vmap(lambda x: x.T)), {}),
        (lambda x: x.astype(jnp.float32) / 3, {}),
        (lambda x: x.astype(jnp.int32) - 50, {}),
        (lambda x: x > 40, {}),
        (lambda x: x[:, 0], {}),
        (lambda x: x.sum(axis=(1, 2)), {}),
        (lambda x: x[..., None], {}),
        (lambda x: x[:, :0], {}),
        (lambda x: (x, x + 1), {"count": 2}),
        (lambda x: (x[:, 0], x), {"count": 2}),
        (lambda x: (x, x[:, 0]), {"count": 2, "output_layouts": ("AB", "C")}),
        (lambda x: x, {"output_layouts": "CD"}),
        (lambda x: x[:, 0], {"output_layouts": "C"}),
        (lambda x, y: x + y, {"inputs": 2}),
        (lambda x, y: (y, x), {"inputs": 2, "count": 2}),
        (lambda x: x, {"device": "cpu"}),
        (lambda x: x, {"data": DATA.astype(np.float16)}),
        (lambda x: x, {"data": DATA.astype(np.int16)}),
        (lambda x: x, {"data": DATA.astype(np.uint32)}),
        (lambda x: x * 2, {"data": DATA[:1]}),
        (lambda x: x, {"data": DATA[:, 0, 0].copy(), "layout": ""}),
    ],
)
def test_values(function, options):
    theirs, ours = both(function, **options)
    assert theirs == ours


@pytest.mark.parametrize(
    ("function", "options"),
    [
        (lambda x: np.asarray(x), {}),
        (lambda x: (x, x), {"count": 3}),
        (lambda x: x, {"count": 2}),
        (lambda x: x[:2], {}),
        (lambda x: x.sum(), {}),
        (lambda x: None, {}),
        (lambda x: 1 / 0, {}),
        (lambda x: x, {"inputs": 2}),
        (lambda x: x, {"output_layouts": "ABC"}),
        (lambda x: x, {"data": [np.zeros((2, 3), np.uint8), np.zeros((1, 3), np.uint8)]}),
        (lambda x: x, {"sharding": "batch"}),
    ],
)
def test_errors(function, options):
    for library in LIBRARIES:
        with pytest.raises(Exception):  # noqa: B017 - each has its own; that there is one counts
            run(library, function, **options)


def test_one_layout_for_several_outputs():
    """As DALI's documentation has it; it refuses it."""
    options = {"count": 2, "output_layouts": "XY"}
    with pytest.raises(RuntimeError):
        run("dali", lambda x: (x, x), **options)
    assert [found[2] for found in run("headrace", lambda x: (x, x), **options)] == ["XY", "XY"]


def test_nothing_returned():
    seen = {library: [] for library in LIBRARIES}
    for library, (lib, plugin) in LIBRARIES.items():

        @lib.pipeline_def(batch_size=4, num_threads=1, device_id=None, prefetch_queue_depth=1)
        def pipe(lib=lib, plugin=plugin, library=library):
            x = lib.fn.external_source(source=lambda: DATA)
            plugin.fn.jax_function(lambda v: seen[library].append(int(v.sum())), num_outputs=0)(x)
            return x

        # The functions append, and so return None.
        made = pipe()
        made.build()
        made.run()
    assert seen["dali"][0] == seen["headrace"][0] == int(DATA.sum())
