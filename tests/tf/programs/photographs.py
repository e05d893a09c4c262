"""Batches for a residual network: an operation in a graph, or a dataset for Keras."""

import nvidia.dali.fn as fn
import nvidia.dali.plugin.tf as dali_tf
import nvidia.dali.tfrecord as tfrec
import nvidia.dali.types as types
import tensorflow as tf
from nvidia.dali.pipeline import pipeline_def

HEIGHT, WIDTH, BATCH = 32, 48, 4


@pipeline_def
def photographs(folder, shard_id, num_gpus, dali_cpu=True, training=True):
    read = fn.readers.tfrecord(
        path=f"{folder}/photographs.tfrecord",
        index_path=f"{folder}/photographs.idx",
        features={
            "image/encoded": tfrec.FixedLenFeature((), tfrec.string, ""),
            "image/class/label": tfrec.FixedLenFeature([1], tfrec.int64, -1),
            "image/object/bbox/xmin": tfrec.VarLenFeature(tfrec.float32, 0.0),
        },
        random_shuffle=training,
        shard_id=shard_id,
        num_shards=num_gpus,
        initial_fill=100,
        name="Reader",
    )
    files, labels = read["image/encoded"], read["image/class/label"]
    decoder, resizer = ("cpu", "cpu") if dali_cpu else ("mixed", "gpu")
    if training:
        images = fn.decoders.image_random_crop(
            files,
            device=decoder,
            output_type=types.RGB,
            random_aspect_ratio=[0.75, 1.25],
            random_area=[0.05, 1.0],
            num_attempts=100,
        )
        images = fn.resize(images, device=resizer, resize_x=WIDTH, resize_y=HEIGHT)
    else:
        images = fn.decoders.image(files, device=decoder, output_type=types.RGB)
        images = fn.resize(images, device=resizer, resize_shorter=56)
    images = fn.crop_mirror_normalize(
        images if dali_cpu else images.gpu(),
        dtype=types.FLOAT,
        crop=(HEIGHT, WIDTH),
        mean=[123.68, 116.78, 103.94],
        std=[58.4, 57.12, 57.3],
        output_layout="HWC",
        mirror=fn.random.coin_flip(),
    )
    labels = fn.cast(labels if dali_cpu else labels.gpu(), dtype=types.INT64)
    labels -= 1
    return images, labels


class Preprocessor:
    """Both ways to the batches."""

    def __init__(self, folder, dali_cpu=True, training=True):
        self.pipe = photographs(
            folder,
            batch_size=BATCH,
            num_threads=2,
            device_id=0,
            shard_id=0,
            num_gpus=1,
            dali_cpu=dali_cpu,
            training=training,
            seed=7,
        )
        self.daliop = dali_tf.DALIIterator()

    def dataset(self):
        return dali_tf.DALIDataset(
            pipeline=self.pipe,
            output_shapes=((BATCH, HEIGHT, WIDTH, 3), (BATCH)),
            batch_size=BATCH,
            output_dtypes=(tf.float32, tf.int64),
            device_id=0,
        )

    def minibatches(self):
        with tf.device("/gpu:0"):
            return self.daliop(
                pipeline=self.pipe,
                shapes=[(BATCH, HEIGHT, WIDTH, 3), ()],
                dtypes=[tf.float32, tf.int64],
                device_id=0,
            )


def in_a_session(folder, steps, **arguments):
    """Evaluate the operation."""
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        images, labels = Preprocessor(folder, **arguments).minibatches()
        return [session.run([images, labels]) for _ in range(steps)]


def in_keras(folder, steps):
    """The losses of a small network."""
    layers = tf.keras.layers
    model = tf.keras.Sequential(
        [layers.Input([HEIGHT, WIDTH, 3]), layers.AveragePooling2D(16), layers.Flatten()]
    )
    model.add(layers.Dense(4))
    model.compile("sgd", tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True))
    dataset = Preprocessor(folder).dataset().map(lambda images, labels: (images, labels + 1))
    return model.fit(dataset, steps_per_epoch=steps, epochs=2, verbose=0).history["loss"]
