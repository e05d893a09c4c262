from __future__ import annotations

import numpy as np
import pytest

from headrace.kernels.cpu.sine import sine_and_cosine


@pytest.mark.parametrize("reach", [0.5, 4.0, 60.0, 119.0, 1e4])
def test_nearly_the_nearest_float32(reach):
    angles = np.random.default_rng(0).uniform(-reach, reach, 2000).astype(np.float32)
    found = np.array([sine_and_cosine(a) for a in angles])
    wanted = np.stack([np.sin(angles.astype(float)), np.cos(angles.astype(float))], axis=1)
    np.testing.assert_array_equal(found, found.astype(np.float32))
    # C promises less than one unit in the last place; at zeros, the angle itself is the limit.
    np.testing.assert_allclose(found, wanted, rtol=1.2e-7, atol=1e-14)


@pytest.mark.parametrize(
    ("radians", "sine", "cosine"),
    [
        # 6.1 and 13 degrees: what C gives is not the nearest float32.
        ("0x1.b414bap-4", "0x1.b341f40000000p-4", "0x1.fd19dc0000000p-1"),
        ("0x1.d0ad2cp-3", "0x1.ccb3240000000p-3", "0x1.f2e0a20000000p-1"),
    ],
)
def test_values_of_c(radians, sine, cosine):
    found = sine_and_cosine(np.float32(float.fromhex(radians)))
    assert [float(v).hex() for v in found] == [sine, cosine]


def test_multiples_of_a_right_angle():
    for quarter, (sine, cosine) in enumerate([(0, 1), (1, 0), (0, -1), (-1, 0)]):
        found = sine_and_cosine(np.float32(quarter * np.pi / 2))
        np.testing.assert_allclose(found, (sine, cosine), atol=2e-7)
