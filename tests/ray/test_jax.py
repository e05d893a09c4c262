"""JAX's iterator over pipelines on a cluster."""

from __future__ import annotations

import numpy as np
import pytest

pytest.importorskip("ray")
pytest.importorskip("jax")

import jax

from headrace.plugin import jax as plugin
from headrace.plugin.ray import LastBatchPolicy, RayJaxIterator
from tests.ray.iterators import NAMES, numbered

pytestmark = pytest.mark.usefixtures("cluster")


def test_arrays_are_those_without_a_cluster_and_go_on(images):
    make = lambda: numbered(images, enable_checkpointing=True)  # noqa: E731
    how = {"reader_name": "reader", "last_batch_policy": LastBatchPolicy.PARTIAL}
    small = {**how, "num_workers": 2, "resources": {"num_cpus": 0.2}}
    expected = list(plugin.DALIGenericIterator(make(), NAMES, **how))
    iterator = RayJaxIterator(make(), NAMES, **small)
    found = [next(iterator) for _ in range(3)]
    again = RayJaxIterator(make(), NAMES, **small)
    again.set_state(iterator.get_state())
    found += list(again)
    for one, other in zip(found, expected, strict=True):
        for name in NAMES:
            assert isinstance(one[name], jax.Array)
            np.testing.assert_array_equal(np.asarray(one[name]), np.asarray(other[name]))
    assert "go to the trainer" in again.cut.why
    assert len(again.workers) == 2
