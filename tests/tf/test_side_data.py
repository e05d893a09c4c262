"""Texts of a pipeline are string tensors."""

from __future__ import annotations

import numpy as np
import tensorflow as tf

from headrace import Pipeline, fn, types
from headrace.plugin.tf import DALIDataset


def test_string_tensors():
    texts = ["a", "Grüße"]
    pipe = Pipeline(2, 1, None)
    with pipe:
        text = fn.external_source(source=lambda: texts, dtype=types.STRING)
        pipe.set_outputs(text, fn.external_source(source=lambda: np.arange(2)))
    dataset = DALIDataset(
        pipe, batch_size=2, output_dtypes=(tf.string, tf.int64), output_shapes=((2,), (2,))
    )
    for found, numbers in dataset.take(2):
        assert [value.decode() for value in found.numpy()] == texts
        assert numbers.numpy().tolist() == [0, 1]
