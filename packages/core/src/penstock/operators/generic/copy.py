"""`copy`."""

from __future__ import annotations

import numpy as np

from penstock.operators.operator import Operator, SampleContext, operator
from penstock.operators.schema import Input


@operator(
    "copy",
    inputs=Input("data", "Data of any rank and layout."),
    output_docs=("Data equal to the input.",),
)
class Copy(Operator):
    """Copies data."""

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> np.ndarray:
        out = c.empty(inputs[0].shape, inputs[0].dtype)
        np.copyto(out, inputs[0])
        return out
