"""Pipelines that other datasets feed, and Python sources, through `DALIDatasetWithInputs`."""

import numpy as np
import nvidia.dali.fn as fn
import nvidia.dali.plugin.tf as dali_tf
import tensorflow as tf
from nvidia.dali import pipeline_def

BATCH = 2


@pipeline_def(device_id=0, num_threads=4, batch_size=BATCH)
def decoded(device):
    files = fn.external_source(name="records")
    images = fn.decoders.image(files, device="mixed" if device == "gpu" else "cpu")
    return fn.resize(images, size=(30, 50))


def records(path, device="cpu"):
    """Images out of a TFRecord file, which TensorFlow reads."""

    def image(record):
        parsed = tf.io.parse_single_example(
            record, {"image/encoded": tf.io.FixedLenFeature([], tf.string, "")}
        )
        return tf.io.decode_raw(parsed["image/encoded"], tf.uint8)

    with tf.device(f"/{device}:0"):
        images = dali_tf.experimental.DALIDatasetWithInputs(
            pipeline=decoded(device),
            input_datasets={"records": tf.data.TFRecordDataset(path).map(image)},
            batch_size=BATCH,
            output_shapes=None,
            output_dtypes=tf.uint8,
            device_id=0,
        )
    return [batch[0].numpy() for batch in images]


def three_batches():
    for n in range(3):
        yield np.full((BATCH, 3), n, np.int32)


@pipeline_def(device_id=0, num_threads=4, batch_size=BATCH)
def of_python_sources():
    """A source that is told which sample it is to make, and one that is a generator."""
    numbers = fn.external_source(
        source=lambda info: np.array([info.idx_in_epoch], np.int32), batch=False
    )
    return numbers, fn.external_source(source=three_batches, cycle="quiet")


def python_sources():
    """Python functions as sources, which DALI turns into datasets."""
    with tf.device("/cpu:0"):
        both = dali_tf.experimental.DALIDatasetWithInputs(
            pipeline=of_python_sources(),
            batch_size=BATCH,
            output_shapes=((BATCH, 1), (BATCH, 3)),
            output_dtypes=(tf.int32, tf.int32),
            device_id=0,
        )
    return [[part.numpy() for part in batch] for batch in both.take(5)]


@pipeline_def(device_id=0, num_threads=4, batch_size=BATCH)
def blended():
    first = fn.external_source(name="first")
    second = fn.external_source(name="second")
    return fn.crop(first, crop=(4, 4)) // 2 + fn.crop(second, crop=(4, 4)) // 2


def two_inputs(first, second):
    """One dataset of samples, and one of batches with their layout."""
    samples = tf.data.Dataset.from_tensor_slices(first)
    batches = tf.data.Dataset.from_tensor_slices(second).batch(BATCH)
    inputs = {
        "first": dali_tf.experimental.Input(samples, layout="HWC"),
        "second": dali_tf.experimental.Input(batches, layout="HWC", batch=True),
    }
    with tf.device("/cpu:0"):
        dataset = dali_tf.experimental.DALIDatasetWithInputs(
            pipeline=blended(), input_datasets=inputs, batch_size=BATCH, output_dtypes=tf.int32
        )
    return [batch[0].numpy() for batch in dataset]
