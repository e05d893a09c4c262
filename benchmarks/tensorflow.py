"""Training with Keras from JPEG files: Headrace's dataset, the same in tf.data, and DALI's engine.

    hatch run bench:tf

Decode a random part of each image, resize it to 224 x 224, mirror at random, normalise. DALI's
plugin for TensorFlow has to be compiled, and runs with a GPU only; its engine on the CPU is asked
for batches through ``Dataset.from_generator``. Each is measured twice: its dataset alone, in a
loop that does nothing, and in ``fit`` with a linear probe of an image's mean colour, so that the
images take the time. How fast ``fit`` is at its best is told by a batch in memory, again and again:
a dataset twice as fast as another cannot show it in a ``fit`` that is itself not faster than that.

Each has a process of its own, and they take turns. A round is an iterator of its own, as ``fit``
makes one: what tf.data makes ready while others run would count as its speed. Of each the median of
all rounds counts: samples per second; and, which depends less on what else the machine does, the
processor's time that its process, and its worker processes, took for a sample.
"""

from __future__ import annotations

import argparse
import os
import statistics
import tempfile
import time
import warnings
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

import tensorflow as tf

import headrace
from benchmarks.support.apart import Apart
from benchmarks.support.harness import Peer, measure
from benchmarks.support.processor_time import seconds_of_all
from examples.demo.photographs import write_dataset
from headrace.plugin.tf import DALIDataset, LastBatchPolicy

SIZE, BATCH = 224, 64
MEAN, STD = [123.675, 116.28, 103.53], [58.395, 57.12, 57.375]
AHEAD = 4
"""So many batches of a round are not counted: pipelines start, and queues fill."""


def graph(lib: Any, root: str) -> tuple[Any, Any]:
    """The pipeline; `lib` is `headrace` or `nvidia.dali`."""
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


def of_headrace(root: str, threads: int) -> Any:
    """`DALIDataset`."""
    pipe = headrace.pipeline_def(graph)(headrace, root, batch_size=BATCH, device_id=None)
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

    pipe = nvidia.dali.pipeline_def(graph)(  # type: ignore[attr-defined]
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


def in_memory(root: str, threads: int) -> Any:
    """One batch that is there already."""
    labels = tf.zeros([BATCH], tf.int32)
    return tf.data.Dataset.from_tensors((tf.random.normal([BATCH, SIZE, SIZE, 3]), labels))


def network(classes: int) -> Any:
    """A linear probe of the mean colour: a network that takes next to no time."""
    model = tf.keras.Sequential(
        [
            tf.keras.Input([SIZE, SIZE, 3]),
            tf.keras.layers.GlobalAveragePooling2D(),
            tf.keras.layers.Dense(classes),
        ]
    )
    loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
    model.compile("sgd", loss)
    return model


class Timed(Peer):
    """A peer that knows how much of the processor's time a sample takes."""

    def __init__(self, name: str) -> None:
        super().__init__(name, lambda: 0)
        self.costs: list[float] = []
        """Milliseconds for a sample, all threads and processes together, one for each round."""

    def counted(self, batches: int, since: tuple[float, float]) -> float:
        """Samples per second; `since` is `clocks` as it was before the batches."""
        seconds, busy = (b - a for a, b in zip(since, clocks(), strict=True))
        self.costs.append(busy * 1e3 / (batches * BATCH))
        return batches * BATCH / seconds


def clocks() -> tuple[float, float]:
    """The time, and the processor's time that the process and those below it have taken."""
    return time.perf_counter(), seconds_of_all()


class Alone(Timed):
    """A dataset whose batches nobody uses."""

    def __init__(self, name: str, dataset: Any) -> None:
        super().__init__(name)
        self._dataset = dataset

    def run(self, seconds: float) -> float:
        """Samples per second of a round of about `seconds`."""
        iterator = iter(self._dataset)
        for _ in range(AHEAD):
            next(iterator)
        batches, since = 0, clocks()
        while time.perf_counter() < since[0] + seconds:
            next(iterator)
            batches += 1
        return self.counted(batches, since)


class InFit(Timed):
    """A dataset that Keras trains a network with."""

    def __init__(self, name: str, dataset: Any, classes: int) -> None:
        super().__init__(name)
        self._dataset = dataset
        self._model = network(classes)

    def run(self, seconds: float) -> float:
        """Samples per second of a round of about `seconds`."""
        batches, since, rate = -AHEAD, clocks(), 0.0

        def on_end(batch: int, logs: Any) -> None:
            nonlocal batches, since, rate
            batches += 1
            if batches <= 0:
                since = clocks()
            elif time.perf_counter() >= since[0] + seconds and not self._model.stop_training:
                rate = self.counted(batches, since)
                self._model.stop_training = True

        callback = tf.keras.callbacks.LambdaCallback(on_train_batch_end=on_end)
        self._model.fit(
            self._dataset, steps_per_epoch=10**6, shuffle=False, verbose=0, callbacks=[callback]
        )
        return rate


MAKERS: dict[str, Callable[[str, int], Any]] = {
    "Headrace": of_headrace,
    "tf.data": of_tensorflow,
    "DALI": of_dali,
    "in memory": in_memory,
}


def make_peer(name: str, root: str, threads: int, fit: bool) -> Timed:
    """A peer, in the process where it runs."""
    warnings.filterwarnings("ignore", module="keras")
    dataset = MAKERS[name](root, threads).repeat()
    return InFit(name, dataset, len(list(Path(root).iterdir()))) if fit else Alone(name, dataset)


def cost(peer: Timed) -> float:
    """Milliseconds of the processor for a sample: the median of the rounds behind the first."""
    return statistics.median(peer.costs[1:])


def main() -> None:
    """Print the figures."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--images", type=int, default=1024)
    parser.add_argument("--rounds", type=int, default=7)
    parser.add_argument("--seconds", type=float, default=3.0)
    parser.add_argument("--threads", type=int, default=2)
    args = parser.parse_args()
    print(f"TensorFlow {tf.__version__}, {args.threads} threads, {os.cpu_count()} processors")
    with tempfile.TemporaryDirectory() as folder:
        root = str(write_dataset(Path(folder, "photographs"), args.images))
        for case, fit in {"dataset alone": False, "Keras' fit": True}.items():
            with ExitStack() as stack:
                names = [name for name in MAKERS if fit or name != "in memory"]
                homes = [stack.enter_context(Apart(name)) for name in names]
                peers = [h.peer(make_peer, h.name, root, args.threads, fit) for h in homes]
                before = os.getloadavg()[0]
                measure(peers, rounds=args.rounds, seconds=args.seconds)
                load = os.getloadavg()[0]
                rows = [(peer.name, peer.rate, peer.tell(cost)) for peer in peers]
            print(f"\n{case} (load {before:.1f} before, {load:.1f} at the end)")
            for name, rate, milliseconds in rows:
                print(
                    f"  {name:10} {rate:6.0f} samples/s {milliseconds:6.2f} ms of processor/sample"
                    f"   Headrace: {rows[0][1] / rate:.2f}x, by processor time "
                    f"{milliseconds / rows[0][2]:.2f}x"
                )


if __name__ == "__main__":
    main()
