"""`optical_flow` of data on the GPU: what the host makes of it."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.operators.image import optical_flow
from tests.support.gpu.alike import check_alike, check_same_error

_rng = np.random.default_rng(0)


def test_as_on_the_host(monkeypatch):
    monkeypatch.setattr(optical_flow, "_warned", [])
    rows = [_rng.integers(0, 255, (n, h, 40, 3), np.uint8) for n, h in ((2, 30), (3, 21), (2, 16))]
    hints = [_rng.random((len(r) - 1, -(-r.shape[1] // 4), 10, 2)).astype(np.float32) for r in rows]
    with pytest.warns(UserWarning, match="`optical_flow` works on the host") as told:
        check_alike("optical_flow", rows, layout="FHWC")
    assert len(told) == 1
    check_alike("optical_flow", rows, hints, layout="FHWC", enable_external_hints=True)
    rows[1] = rows[1][:1]
    check_same_error("optical_flow", rows, layout="FHWC", sample=1)
