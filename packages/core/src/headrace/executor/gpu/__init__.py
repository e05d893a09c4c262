"""Stages on the GPU: whole batches, queued on streams."""
