"""Pipelines as transforms in the worker processes of a PyTorch `DataLoader`.

A `DALIServer` runs the pipeline in a thread of the main process. Its `proxy` takes the place of a
transform: in the workers, it notes the inputs of a sample; where PyTorch collates samples to a
batch, the inputs are sent to the server; and `produce_data` puts the outputs in their place.
"""

from __future__ import annotations

from headrace.plugin.pytorch.experimental.proxy.loader import DataLoader
from headrace.plugin.pytorch.experimental.proxy.references import (
    DALIOutputBatchRef,
    DALIOutputSampleRef,
    DALIPipelineRunRef,
    _collate_dali_output_sample_ref_fn,  # noqa: F401 - the name by which programs know it
)
from headrace.plugin.pytorch.experimental.proxy.server import DALIServer

__all__ = [
    "DALIOutputBatchRef",
    "DALIOutputSampleRef",
    "DALIPipelineRunRef",
    "DALIServer",
    "DataLoader",
]


def __dir__() -> list[str]:
    return [*__all__]
