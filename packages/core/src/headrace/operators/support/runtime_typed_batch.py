"""Batches of which nothing is known before they are there: what functions of users return."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from headrace.tensors.gpu.batch import DeviceBatch

if TYPE_CHECKING:
    import numpy as np

    from headrace.operators.support.schema import Spec


class RuntimeTypedBatch(NamedTuple):
    """An output of an operator whose declaration says `data_dependent_type`.

    `values`: all samples: one array ``(samples, ...)`` on the CPU, a batch on the GPU. `spec`: what
    they are.
    """

    values: np.ndarray | DeviceBatch
    spec: Spec
