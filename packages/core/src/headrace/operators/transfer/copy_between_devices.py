"""The operators behind ``.gpu()`` and ``.cpu()``."""

from __future__ import annotations

from headrace.kernels.gpu import transfer as _transfer
from headrace.operators.support.operator import BatchContext, HostBatch, SampleOperator, operator
from headrace.operators.support.schema import Input
from headrace.tensors.gpu.batch import DeviceBatch


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
        dense = data.dense
        segments = None if dense is not None else data.segments
        batch = None if segments is None else _transfer.segments_to_device(c.queue, segments)
        if batch is None:  # rows may have to be made, which is not worth it for nothing
            batch = _transfer.to_device(
                c.queue, data.rows if dense is None else (), dense, c.threads
            )
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

    def gpu(self, c: BatchContext, data: DeviceBatch) -> _transfer.HostCopy:
        return _transfer.to_host(c.queue, data)
