"""Training with Keras from JPEG files: Penstock's dataset, the same in tf.data, and DALI's engine.

    hatch run bench:tf

Decode a random part of each image, resize it to 224 x 224, mirror at random, normalise. DALI's
plugin for TensorFlow has to be compiled, and runs with a GPU only; its engine on the CPU is asked
for batches through ``Dataset.from_generator``. Each is measured twice: its dataset alone, in a
loop that does nothing, and in ``fit`` with a network that is small, so that the images take the
time. The cases take turns; of each, the median of all rounds counts, in samples per second.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

import penstock
from examples.demo.photographs import write_dataset
from penstock.plugin.tf import DALIDataset, LastBatchPolicy

SIZE, BATCH = 224, 64
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]


def graph(lib: Any, root: str) -> tuple[Any, Any]:
    """The pipeline; `lib` is `penstock` or `nvidia.dali`."""
    fn = lib.fn
    jpegs, labels = fn.readers.file(
        file_root=root, random_shuffle=True, pad_last_batch=True, name="reader"
    )
    images = fn.decoders.image_random_crop(jpegs, random_area=[0.08, 1.0])
    images = fn.resize(images, size=(SIZE, SIZE))
    images = fn.crop_mirror_normalize(
        images,
        dtype=lib.types.FLOAT,
        output_layout="HWC",
        mean=MEAN,
        std=STD,
        mirror=fn.random.coin_flip(),
    )
    return images, labels


def of_penstock(root: str, threads: int) -> Any:
    """`DALIDataset`."""
    pipe = penstock.pipeline_def(graph)(penstock, root, batch_size=BATCH, device_id=None)
    return DALIDataset(
        pipe,
        (tf.float32, tf.int32),
        ((None, SIZE, SIZE, 3), (None,)),
        batch_size=BATCH,
        num_threads=threads,
        device_id=None,
        reader_name="reader",
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )


def of_tensorflow(root: str, threads: int) -> Any:
    """The same in tf.data."""
    classes = sorted(p.name for p in Path(root).iterdir())
    files = [(str(p), k) for k, name in enumerate(classes) for p in Path(root, name).iterdir()]
    paths, labels = zip(*files, strict=True)

    def sample(path: Any, label: Any) -> Any:
        jpeg = tf.io.read_file(path)
        begin, size, _ = tf.image.sample_distorted_bounding_box(
            tf.image.extract_jpeg_shape(jpeg),
            tf.zeros([1, 0, 4]),
            area_range=(0.08, 1.0),
            aspect_ratio_range=(3 / 4, 4 / 3),
            use_image_if_no_bounding_boxes=True,
            min_object_covered=0.0,
        )
        window = tf.stack([begin[0], begin[1], size[0], size[1]])
        image = tf.image.decode_and_crop_jpeg(jpeg, window, channels=3)
        image = tf.image.resize(image, (SIZE, SIZE), antialias=True)
        return (tf.image.random_flip_left_right(image) - MEAN) / STD, label

    ds = tf.data.Dataset.from_tensor_slices((list(paths), list(labels))).shuffle(len(files))
    ds = ds.map(sample, num_parallel_calls=tf.data.AUTOTUNE, deterministic=False)
    options = tf.data.Options()
    options.threading.private_threadpool_size = threads
    return ds.batch(BATCH).prefetch(tf.data.AUTOTUNE).with_options(options)


def of_dali(root: str, threads: int) -> Any:
    """DALI's engine on the CPU, through a generator."""
    import nvidia.dali
    import nvidia.dali.fn

    pipe = nvidia.dali.pipeline_def(graph)(
        nvidia.dali, root, batch_size=BATCH, num_threads=threads, device_id=None
    )
    pipe.build()
    steps = -(-pipe.epoch_size("reader") // BATCH)

    def batches() -> Iterator[Any]:
        for _ in range(steps):
            images, labels = pipe.run()
            yield images.as_array(), labels.as_array().ravel()

    return tf.data.Dataset.from_generator(
        batches,
        output_signature=(
            tf.TensorSpec([None, SIZE, SIZE, 3], tf.float32),
            tf.TensorSpec([None], tf.int32),
        ),
    ).prefetch(2)


def network(classes: int) -> Any:
    """A network that takes next to no time."""
    model = tf.keras.Sequential(
        [
            tf.keras.Input([SIZE, SIZE, 3]),
            tf.keras.layers.AveragePooling2D(32),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(classes),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss)
    return model


def drain(dataset: Any) -> None:
    """One epoch, of which nothing is used."""
    for _ in dataset:
        pass


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=5)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    warnings.filterwarnings("ignore", module="keras")
    makers: dict[str, Callable[[str, int], Any]] = {
        "Penstock": of_penstock,
        "tf.data": of_tensorflow,
        "DALI": of_dali,
    }
    with tempfile.TemporaryDirectory() as folder:
        root = str(write_dataset(Path(folder, "photographs"), args.images))
        count = sum(len(list(p.iterdir())) for p in Path(root).iterdir())
        datasets = {name: make(root, args.threads) for name, make in makers.items()}
        models = {name: network(len(list(Path(root).iterdir()))) for name in makers}
        steps: dict[str, Callable[[str], Any]] = {
            "dataset alone": lambda name: drain(datasets[name]),
            "Keras' fit": lambda name: models[name].fit(datasets[name], shuffle=False, verbose=0),
        }
        speeds: dict[tuple[str, str], list[float]] = {(s, n): [] for s in steps for n in makers}
        for turn in range(args.rounds + 1):  # the first is to warm up
            for step, name in speeds:
                start = time.perf_counter()
                steps[step](name)
                if turn:
                    speeds[step, name].append(count / (time.perf_counter() - start))
    medians = {key: statistics.median(values) for key, values in speeds.items()}
    for (step, name), speed in medians.items():
        ratio = medians[step, "Penstock"] / speed
        print(f"{step:14} {name:10} {speed:7.0f} samples/s   Penstock: {ratio:.2f}x")


if __name__ == "__main__":
    main()
