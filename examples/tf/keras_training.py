"""Train a Keras model on JPEG files, from a pipeline and from the same written in tf.data.

    hatch run tf:keras-training

Both decode, resize and normalise the photographs of the demo, in the same order, and train the same
network. The losses agree as far as the resizing does; what each takes for an epoch is printed.
"""

from __future__ import annotations

import argparse
import os
import tempfile
import time
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

from examples.demo.photographs import write_dataset
from headrace import fn, pipeline_def, types
from headrace.plugin.tf import DALIDataset, LastBatchPolicy

SIZE, BATCH = 96, 32


@pipeline_def(device_id=None)
def photographs(files: list[str], labels: list[int]) -> Any:
    """Decode, resize, normalise."""
    jpegs, numbers = fn.readers.file(files=files, labels=labels, pad_last_batch=True, name="reader")
    images = fn.resize(fn.decoders.image(jpegs), size=(SIZE, SIZE), antialias=False)
    images = fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="HWC", mean=[127.5] * 3, std=[127.5] * 3
    )
    return images, numbers


def with_headrace(files: list[str], labels: list[int]) -> Any:
    """The pipeline as a dataset; an epoch shows each file once."""
    return DALIDataset(
        photographs(files, labels, batch_size=BATCH),
        (tf.float32, tf.int32),
        ((None, SIZE, SIZE, 3), (None,)),
        batch_size=BATCH,
        num_threads=2,
        device_id=None,
        reader_name="reader",
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )


def with_tensorflow(files: list[str], labels: list[int]) -> Any:
    """The same in tf.data."""

    def sample(path: Any, label: Any) -> Any:
        image = tf.io.decode_jpeg(tf.io.read_file(path), channels=3, dct_method="INTEGER_ACCURATE")
        return tf.image.resize(image, (SIZE, SIZE)) / 127.5 - 1, label

    ds = tf.data.Dataset.from_tensor_slices((files, labels))
    return ds.map(sample, num_parallel_calls=2).batch(BATCH).prefetch(2)


def network(classes: int) -> Any:
    """A small convolutional network, always with the same weights."""
    tf.keras.utils.set_random_seed(7)
    layers = [tf.keras.Input([SIZE, SIZE, 3])]
    layers += [tf.keras.layers.Conv2D(width, 3, 2, activation="relu") for width in (8, 16, 32)]
    layers += [tf.keras.layers.GlobalAveragePooling2D(), tf.keras.layers.Dense(classes)]
    model = tf.keras.Sequential(layers)
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile(tf.keras.optimizers.Adam(1e-3), loss, metrics=["accuracy"])
    return model


def main(arguments: list[str] | None = None) -> dict[str, list[float]]:
    """Train twice; the losses of all epochs, by what made the images."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=512)
    parser.add_argument("--epochs", type=int, default=3)
    args = parser.parse_args(arguments)
    losses = {}
    with tempfile.TemporaryDirectory() as folder:
        root = write_dataset(Path(folder, "photographs"), args.images)
        classes = sorted(root.iterdir())
        found = [(str(p), k) for k, name in enumerate(classes) for p in sorted(name.iterdir())]
        found = found[::7] + [one for k, one in enumerate(found) if k % 7]  # not class by class
        files, labels = [path for path, _ in found], [label for _, label in found]
        for name, make in (("Headrace", with_headrace), ("tf.data", with_tensorflow)):
            model, dataset = network(len(classes)), make(files, labels)
            next(iter(dataset))  # threads are started, and kernels compiled
            start = time.perf_counter()
            history = model.fit(dataset, epochs=args.epochs, shuffle=False, verbose=0).history
            speed = len(files) * args.epochs / (time.perf_counter() - start)
            losses[name] = history["loss"]
            told = ", ".join(f"{loss:.4f}" for loss in losses[name])
            print(f"{name:9} {speed:6.0f} samples/s   losses {told}")
    return losses


if __name__ == "__main__":
    main()
