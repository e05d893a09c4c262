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
    """Copies data.

    Nothing in a pipeline changes data in place, so that a real copy is made only where the
    result leaves the pipeline or goes to another device.
    """

    def cpu(self, c: SampleContext, *inputs: np.ndarray) -> np.ndarray:
        return inputs[0]
