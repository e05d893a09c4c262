"""Taps computed on the GPU are those of the CPU, to the last bit."""

from __future__ import annotations

import hypothesis.strategies as st
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings

from headrace.kernels.cpu.resample_taps import AxisSampling, Filter, axis_taps
from headrace.kernels.gpu.resample_axes import AxesSampling
from headrace.kernels.gpu.resample_taps import axes_taps
from headrace.kernels.plan.resize_axes import AXIS
from tests.support.gpu.session import gpu_session

ALIKE = [HealthCheck.function_scoped_fixture]


def read(session, address, shape, dtype):
    """An array of device memory."""
    found = session.queue.pinned.empty(shape, dtype)
    if found.size:
        session.runtime.copy(found.ctypes.data, int(address), found.nbytes, session.stream)
        session.synchronize()
    return found.copy()


def assert_same_taps(axes, windows, antialias):
    """Compare the taps of some axes, all `stepwise` or none of them."""
    one = [(*axis, *window) for axis, window in zip(axes, windows, strict=True)]
    # The last axis is not stepwise, the one in front of it is.
    twice = AxesSampling(np.array([one, one], AXIS), antialias)
    with gpu_session() as session:
        taps = axes_taps(session.queue, twice).axes
        for row, stepwise in enumerate((True, False)):
            for i, (axis, (begin, length, step)) in enumerate(zip(axes, windows, strict=True)):
                expected = axis_taps(AxisSampling(*axis, antialias, stepwise), begin, length, step)
                assert taps["taps"][row, i] == expected.weights.shape[1]
                first = read(session, taps["first"][row, i], (length,), np.int32)
                np.testing.assert_array_equal(first, expected.first)
                shape = expected.weights.shape
                weights = read(session, taps["weights"][row, i], shape, np.float32)
                np.testing.assert_array_equal(
                    weights.view(np.int32), expected.weights.view(np.int32)
                )


def whole(axes):
    return [(0, a[1], 1) for a in axes]


@pytest.mark.parametrize("antialias", [True, False])
@pytest.mark.parametrize("kind", list(Filter))
def test_filters(kind, antialias):
    axes = [(i, o, 0.0, float(i), kind) for i, o in [(57, 29), (29, 57), (31, 31), (1, 5), (9, 1)]]
    assert_same_taps(axes, whole(axes), antialias)


@pytest.mark.parametrize("kind", list(Filter))
def test_windows_in_either_order_and_outside(kind):
    axes = [(40, 25, 3.25, 37.5, kind), (40, 25, 37.5, 3.25, kind), (40, 25, -9.0, 60.0, kind)]
    # A window is begin, length and step.
    assert_same_taps(axes, [(4, 9, 1), (20, 30, -1), (-7, 70, 1)], True)


def test_large_reductions_and_positions_on_borders():
    axes = [(4000, 7, 0.0, 4000.0, Filter.LANCZOS), (640, 320, 0.0, 640.0, Filter.NEAREST)]
    assert_same_taps(axes, whole(axes), True)


regions = st.floats(-100, 400, width=32)
axes = st.tuples(
    st.integers(1, 300), st.integers(1, 90), regions, regions, st.sampled_from(list(Filter))
)
windows = st.tuples(st.integers(-40, 120), st.integers(1, 60), st.sampled_from([1, -1]))


@settings(max_examples=60, deadline=None, suppress_health_check=ALIKE)
@given(st.lists(st.tuples(axes, windows), min_size=1, max_size=4), st.booleans())
def test_any(cases, antialias):
    chosen = [c for c in cases if c[0][2] != c[0][3]]
    if chosen:
        assert_same_taps([c[0] for c in chosen], [c[1] for c in chosen], antialias)
