"""Run one graph in real DALI and in Headrace on the same inputs and compare everything.

A graph is written once, as a function of the library::

    def graph(lib, images):
        return lib.fn.flip(images, horizontal=1)


    assert_parity(graph, [image_a, image_b], layouts="HWC")
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
import nvidia.dali
import nvidia.dali.fn
import nvidia.dali.math
import nvidia.dali.pipeline
import nvidia.dali.types
import pytest

import headrace
import headrace.errors
import headrace.fn
import headrace.math
import headrace.pipeline
import headrace.types
from tests.support import chunks

LIBRARIES = {"dali": nvidia.dali, "headrace": headrace}


class Output:
    """One pipeline output as plain data."""

    def __init__(self, tensor_list: Any) -> None:
        self.samples = [np.array(tensor_list.at(i)) for i in range(len(tensor_list))]
        self.layout = tensor_list.layout()
        self.dtype = int(tensor_list.dtype)


def run_graph(
    library: str,
    graph: Callable[..., Any],
    *feeds: Sequence[np.ndarray],
    layouts: str | Sequence[str] = "",
    iterations: int = 1,
    seed: int = 7,
    **pipeline_args: Any,
) -> list[list[Output]]:
    """Outputs of every iteration of `graph` in `library` (``"dali"`` or ``"headrace"``)."""
    lib = LIBRARIES[library]
    if isinstance(layouts, str):
        layouts = [layouts] * len(feeds)
    batch_size = pipeline_args.pop("batch_size", len(feeds[0]) if feeds else 4)
    kwargs = {"num_threads": 2, "device_id": None, "seed": seed, **pipeline_args}
    pipe = lib.pipeline.Pipeline(batch_size=batch_size, **kwargs)
    with pipe:
        nodes = []
        for feed, layout in zip(feeds, layouts, strict=True):
            batch = list(feed)
            if library == "headrace" and chunks.are_set():
                batch = chunks.as_one_array(batch)
            nodes.append(lib.fn.external_source(source=_returning(batch), layout=layout or None))
        result = graph(lib, *nodes)
        outputs = result if isinstance(result, (tuple, list)) else (result,)
        pipe.set_outputs(*outputs)
    pipe.build()
    return [[Output(o) for o in pipe.run()] for _ in range(iterations)]


def _returning(batch: list[np.ndarray]) -> Callable[[], list[np.ndarray]]:
    return lambda: batch


def assert_parity(
    graph: Callable[..., Any],
    *feeds: Sequence[np.ndarray],
    max_levels: int = 1,
    differing: float = 0.001,
    relative: float = 1e-5,
    absolute: float = 1e-5,
    **options: Any,
) -> None:
    """Check that both libraries give equal shapes, types and layouts and values within rounding.

    Parameters
    ----------
    max_levels, differing
        Integers may be off by at most `max_levels` on at most the fraction `differing` of all
        values (of the whole batch), and by nothing anywhere else.
    relative, absolute
        Tolerances of floats, `absolute` scaled by the largest magnitude of the expected sample.
    **options
        See `run_graph`.
    """
    if chunks.SIZES:  # memory of later batches follows from the shapes of earlier ones
        options["iterations"] = max(options.get("iterations", 1), 3)
    expected = run_graph("dali", graph, *feeds, **options)
    actual = run_graph("headrace", graph, *feeds, **options)
    compare_outputs(expected, actual, max_levels, differing, relative, absolute)


def compare_outputs(
    expected: list[list[Output]],
    actual: list[list[Output]],
    max_levels: int = 1,
    differing: float = 0.001,
    relative: float = 1e-5,
    absolute: float = 1e-5,
) -> None:
    """Compare outputs of iterations; parameters are those of `assert_parity`."""
    for want_iteration, got_iteration in zip(expected, actual, strict=True):
        assert len(want_iteration) == len(got_iteration)
        for number, (want, got) in enumerate(zip(want_iteration, got_iteration, strict=True)):
            _compare(number, want, got, max_levels, differing, relative, absolute)


def _compare(number, want, got, max_levels, differing, relative, absolute):
    assert got.dtype == want.dtype, f"output {number}: type {got.dtype} != {want.dtype}"
    assert got.layout == want.layout, f"output {number}: layout {got.layout!r} != {want.layout!r}"
    shapes = [s.shape for s in got.samples], [s.shape for s in want.samples]
    assert shapes[0] == shapes[1], f"output {number}: shapes {shapes[0]} != {shapes[1]}"
    off = total = 0
    for i, (a, b) in enumerate(zip(got.samples, want.samples, strict=True)):
        if a.dtype.kind == "f":
            scale = float(np.max(np.abs(b[np.isfinite(b)]), initial=1.0))
            np.testing.assert_allclose(
                a, b, rtol=relative, atol=absolute * scale, err_msg=f"output {number} sample {i}"
            )
        else:
            difference = np.abs(a.astype(np.float64) - b.astype(np.float64))
            worst = difference.max(initial=0)
            assert worst <= max_levels, f"output {number} sample {i}: off by {worst}"
            off += int(np.count_nonzero(difference))
            total += difference.size
    assert off <= differing * total, f"output {number}: {off} of {total} values differ"


def assert_both_raise(
    graph: Callable[..., Any],
    *feeds: Sequence[np.ndarray],
    match: str | None = None,
    **options: Any,
) -> str:
    """Check that both err, Headrace with one of its own errors; return its message.

    `match` is a pattern that must occur in Headrace's message.
    """
    with pytest.raises(Exception):  # noqa: B017 - whatever DALI raises
        run_graph("dali", graph, *feeds, **options)
    with pytest.raises(headrace.errors.HeadraceError, match=match) as caught:
        run_graph("headrace", graph, *feeds, **options)
    return str(caught.value)
