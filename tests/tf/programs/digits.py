"""Digits, classified by a small network: Keras, a strategy, and a graph of TensorFlow 1."""

import nvidia.dali.ops as ops
import nvidia.dali.plugin.tf as dali_tf
import nvidia.dali.types as types
import tensorflow as tf
import tensorflow.compat.v1 as tf_v1
from nvidia.dali.pipeline import Pipeline

BATCH, SIZE, CLASSES = 50, 28, 10
SHAPES = ((BATCH, SIZE, SIZE), (BATCH))
TYPES = (tf.float32, tf.int32)


class Digits(Pipeline):
    """Digits in a data base (LMDB) of Caffe2's records."""

    def __init__(self, folder, device, device_id=0, shard_id=0, num_shards=1):
        super().__init__(BATCH, 4, device_id, seed=7)
        self.device = device
        self.reader = ops.readers.Caffe2(
            path=folder, random_shuffle=True, shard_id=shard_id, num_shards=num_shards
        )
        self.decode = ops.decoders.Image(
            device="mixed" if device == "gpu" else "cpu", output_type=types.GRAY
        )
        self.normalize = ops.CropMirrorNormalize(
            device=device, dtype=types.FLOAT, std=[255.0], output_layout="CHW"
        )

    def define_graph(self):
        files, labels = self.reader(name="Reader")
        images = self.normalize(self.decode(files))
        return images, labels.gpu() if self.device == "gpu" else labels


def dataset(folder, device, **arguments):
    """The pipeline as a dataset, on a device."""
    with tf.device(f"/{device}:0"):
        return dali_tf.DALIDataset(
            pipeline=Digits(folder, device),
            batch_size=BATCH,
            output_shapes=SHAPES,
            output_dtypes=TYPES,
            device_id=0,
            **arguments,
        )


def network():
    """One hidden layer."""
    model = tf.keras.models.Sequential(
        [
            tf.keras.layers.Input(shape=(SIZE, SIZE), name="images"),
            tf.keras.layers.Flatten(),
            tf.keras.layers.Dense(64, activation="relu"),
            tf.keras.layers.Dropout(0.1),
            tf.keras.layers.Dense(CLASSES, activation="softmax"),
        ]
    )
    model.compile("adam", "sparse_categorical_crossentropy", metrics=["accuracy"])
    return model


def keras(folder, device, **arguments):
    """Train, then the accuracy in a pass over all images."""
    digits = dataset(folder, device, **arguments)
    model = network()
    model.fit(digits, epochs=3, steps_per_epoch=40, verbose=0)
    return model.evaluate(digits, steps=20, verbose=0)[1]


def keras_with_names(folder):
    """The same, where the input of the model has a name."""
    digits = dataset(folder, "cpu", fail_on_device_mismatch=False)
    digits = digits.map(lambda images, labels: ({"images": images}, labels))
    model = network()
    return model.fit(digits, epochs=2, steps_per_epoch=40, verbose=0).history["accuracy"][1]


def mirrored(folder, devices):
    """Two replicas, each with a pipeline of its own that reads a shard of the files."""
    strategy = tf.distribute.MirroredStrategy(devices=devices)
    with strategy.scope():
        model = network()
    shards = []

    def shard(context):
        number = context.input_pipeline_id
        shards.append(number)
        with tf.device(devices[number]):
            return dali_tf.DALIDataset(
                pipeline=Digits(folder, "cpu", number, number, len(devices)),
                batch_size=BATCH,
                output_shapes=SHAPES,
                output_dtypes=TYPES,
                device_id=number,
            )

    options = tf.distribute.InputOptions(
        experimental_place_dataset_on_device=True,
        experimental_fetch_to_device=False,
        experimental_replication_mode=tf.distribute.InputReplicationMode.PER_REPLICA,
    )
    digits = strategy.distribute_datasets_from_function(shard, options)
    model.fit(digits, epochs=2, steps_per_epoch=20, verbose=0)
    return model.evaluate(digits, steps=10, verbose=0)[1], shards


def graph(folder, device):
    """A graph with layers, a loss and steps of its own; the accuracy of the last steps."""
    with tf.Graph().as_default(), tf_v1.Session() as session:
        iterator = tf_v1.data.make_initializable_iterator(dataset(folder, device))
        images, labels = iterator.get_next()
        labels = tf_v1.reshape(tf_v1.one_hot(labels, CLASSES), [BATCH, CLASSES])
        weights = tf_v1.get_variable("weights", [SIZE * SIZE, CLASSES])
        found = tf_v1.reshape(images, [BATCH, SIZE * SIZE]) @ weights
        loss = tf_v1.reduce_mean(tf.nn.softmax_cross_entropy_with_logits(labels, found))
        step = tf_v1.train.AdamOptimizer(0.01).minimize(loss)
        right = tf_v1.equal(tf_v1.argmax(found, 1), tf_v1.argmax(labels, 1))
        accuracy = tf_v1.reduce_mean(tf_v1.cast(right, tf_v1.float32))
        session.run([tf_v1.global_variables_initializer(), iterator.initializer])
        for _ in range(60):
            session.run(step)
        return sum(session.run(accuracy) for _ in range(10)) / 10
