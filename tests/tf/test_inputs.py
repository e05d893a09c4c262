"""Pipelines that other datasets feed."""

from __future__ import annotations

import numpy as np
import pytest
import tensorflow as tf

from headrace import Pipeline, errors, fn
from headrace.plugin.tf.experimental import DALIDatasetWithInputs, Input

SAMPLES = [np.arange(n, dtype=np.int32) for n in (3, 1, 2, 5, 4)]


def pipeline(*names, batch_size=2, enable_checkpointing=False, **arguments):
    """Returns what its external sources of these names are fed."""
    pipe = Pipeline(batch_size, 1, None, enable_checkpointing=enable_checkpointing)
    with pipe:
        pipe.set_outputs(*(fn.external_source(name=name, **arguments) for name in names))
    return pipe


def with_inputs(pipe, inputs, *args, batch_size=2, **arguments):
    return DALIDatasetWithInputs(
        pipe, *args, input_datasets=inputs, batch_size=batch_size, device_id=None, **arguments
    )


def of_samples():
    return tf.data.Dataset.from_generator(
        lambda: iter(SAMPLES), output_signature=tf.TensorSpec([None], tf.int32)
    )


def test_samples_become_batches_and_an_incomplete_one_is_dropped():
    spec = tf.RaggedTensorSpec([None, None], tf.int32, ragged_rank=1)
    ds = with_inputs(pipeline("a"), {"a": of_samples()}, None, spec)
    for _ in range(2):  # each iterator has an iterator of the input
        assert [x.to_list() for (x,) in ds] == [[[0, 1, 2], [0]], [[0, 1], [0, 1, 2, 3, 4]]]


def test_batches_samples_sources_and_what_is_computed_of_them():
    pipe = Pipeline(2, 1, None)
    with pipe:
        a, b = fn.external_source(name="a"), fn.external_source(name="b", batch=False)
        c = fn.external_source(source=[np.full(2, 100, np.int32)] * 9)
        pipe.set_outputs(a + b + c)
    inputs = {
        "a": Input(tf.data.Dataset.range(6, output_type=tf.int32).batch(2), batch=None),
        "b": tf.data.Dataset.range(100, output_type=tf.int32).map(lambda n: n * 10),
    }
    ds = with_inputs(pipe, inputs)
    assert [x.numpy().tolist() for (x,) in ds.prefetch(2)] == [
        [100, 111],
        [122, 133],
        [144, 155],
    ]


def test_strings_and_ragged_batches():
    pipe = pipeline("a", "b")
    inputs = {
        "a": tf.data.Dataset.from_tensor_slices([b"abc", b"xyz"]),
        "b": Input(of_samples().take(4).ragged_batch(2), batch=True),
    }
    spec = tf.RaggedTensorSpec([None, None], tf.int32, ragged_rank=1)
    ((text, ragged),) = with_inputs(pipe, inputs, None, (None, spec))
    assert bytes(text.numpy().ravel()) == b"abcxyz"
    assert ragged.to_list() == [[0, 1, 2], [0]]


def test_layouts():
    images = tf.data.Dataset.from_tensors(np.zeros((4, 6, 3), np.uint8)).repeat(2)
    pipe = Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(fn.crop(fn.external_source(name="a"), crop=(2, 2)))
    ((found,),) = with_inputs(pipe, {"a": Input(images, layout="HWC")})
    assert found.shape == (2, 2, 2, 3)
    with pytest.raises(errors.ArgumentValueError, match=r"layout 'HWC'.*'CHW'"):
        with_inputs(pipeline("a", layout="CHW"), {"a": Input(images, layout="HWC")})


def test_many_datasets_at_once():
    """More than TensorFlow has threads for: each waits for an input that needs one as well."""
    inner = tf.data.Dataset.range(40).map(lambda n: n + 1, num_parallel_calls=2)
    several = [with_inputs(pipeline("a"), {"a": inner}, tf.int64, ((2,),)) for _ in range(8)]
    total = 0
    for elements in tf.data.Dataset.zip(tuple(several)):
        total += sum(int(tf.reduce_sum(x)) for (x,) in elements)
    assert total == 8 * sum(range(1, 41))


def test_what_cannot_be():
    images = tf.data.Dataset.range(4)
    for wrong in ["a", images, [images], {"a": "str"}, {"a": [images]}, {42: images}]:
        with pytest.raises(TypeError, match="`input_datasets` must be a dictionary that maps"):
            with_inputs(pipeline("a"), wrong)
    with pytest.raises(TypeError, match="must be instances of type"):
        Input([1])
    with pytest.raises(ValueError, match=r"not assigned any inputs.*'b'"):
        with_inputs(pipeline("a", "b"), {"a": images})
    with pytest.raises(ValueError, match=r"Did not find an External Source.*name='b'"):
        with_inputs(pipeline("a"), {"a": images, "b": images})
    with pytest.raises(ValueError, match="not named"):
        with_inputs(pipeline(None), {})
    with pytest.raises(ValueError, match="Double specification"):
        with_inputs(pipeline("a", source=[np.zeros(2)]), {"a": images})
    with pytest.raises(errors.NotYetSupportedError, match="Checkpointing"):
        with_inputs(pipeline("a", enable_checkpointing=True), {"a": images})
    pairs = tf.data.Dataset.zip((images, images))
    with pytest.raises(errors.ArgumentTypeError, match='source "a" gave a tuple; only examples'):
        with_inputs(pipeline("a"), {"a": pairs})
