"""Dynamic mode in PyTorch programs: `nodes`, for ``torchdata.nodes``.

`Tensor.torch` and `Batch.torch` need no more than PyTorch.
"""
