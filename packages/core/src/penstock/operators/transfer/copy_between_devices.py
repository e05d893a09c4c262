"""The operators behind ``.gpu()`` and ``.cpu()``."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.operators.support.operator import BatchContext, HostBatch, SampleOperator, operator
from penstock.operators.support.schema import Input
from penstock.tensors.gpu.batch import DeviceBatch

if TYPE_CHECKING:
    from penstock.kernels.gpu.transfer import HostCopy


@operator(
    "_copy_to_gpu",
    inputs=Input("data", "A batch in host memory.", device="cpu"),
    devices=("mixed",),
    hidden=True,
    written=".gpu()",
    copies_to="gpu",
)
class CopyToGpu(SampleOperator):
    """Copy a batch from the host to the GPU."""

    def gpu(self, c: BatchContext, data: HostBatch) -> DeviceBatch:
        from penstock.kernels.gpu.transfer import segments_to_device, to_device

        dense = data.dense
        segments = None if dense is not None else data.segments
        batch = None if segments is None else segments_to_device(c.queue, segments)
        if batch is None:  # rows may have to be made, which is not worth it for nothing
            batch = to_device(c.queue, data.rows if dense is None else (), dense)
        data.note_upload()
        return batch


@operator(
    "_copy_to_cpu",
    inputs=Input("data", "A batch in device memory."),
    devices=("gpu",),
    hidden=True,
    written=".cpu()",
    copies_to="cpu",
)
class CopyToCpu(SampleOperator):
    """Copy a batch from the GPU to the host."""

    def gpu(self, c: BatchContext, data: DeviceBatch) -> HostCopy:
        from penstock.kernels.gpu.transfer import to_host

        return to_host(c.queue, data)
