"""Operations that read RecordIO files, and annotated images whose boxes are sparse tensors."""

import nvidia.dali.fn as fn
import nvidia.dali.plugin.tf as dali_tf
import nvidia.dali.types as types
import tensorflow as tf
from nvidia.dali.pipeline import Pipeline, pipeline_def

BATCH, SIZE = 4, 24


class RecordIO(Pipeline):
    """Images and labels of MXNet's files, a shard for each device."""

    def __init__(self, path, index_path, device_id, num_devices):
        super().__init__(BATCH, 2, device_id, seed=12 + device_id)
        self.arguments = {
            "path": [path],
            "index_path": [index_path],
            "shard_id": device_id,
            "num_shards": num_devices,
        }

    def define_graph(self):
        jpegs, labels = fn.readers.mxnet(**self.arguments)
        images = fn.resize(fn.decoders.image(jpegs), size=(SIZE, SIZE))
        images = fn.crop_mirror_normalize(
            images, dtype=types.FLOAT, crop=(16, 16), mean=[128.0] * 3, std=[64.0] * 3
        )
        return images, labels


def recordio(path, index_path, steps, num_devices=2):
    """Batches of two operations, in one evaluation."""
    operation = dali_tf.DALIIterator()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        outputs = []
        for number in range(num_devices):
            outputs += operation(
                pipeline=RecordIO(path, index_path, number, num_devices),
                shapes=[(BATCH, 3, 16, 16), (BATCH, 1)],
                dtypes=[tf.float32, tf.float32],
                device_id=number,
            )
        return [session.run(outputs) for _ in range(steps)]


@pipeline_def(batch_size=BATCH, num_threads=2, device_id=0, seed=15)
def annotated(root, annotations):
    jpegs, boxes, labels, ids = fn.readers.coco(
        file_root=root, annotations_file=annotations, ratio=True, ltrb=True, image_ids=True
    )
    images = fn.resize(fn.decoders.image(jpegs), size=(SIZE, SIZE))
    return images, boxes, labels, ids


def sparse_boxes(root, annotations, steps):
    """Images, and boxes and labels of as many objects as each image has."""
    operation = dali_tf.DALIIterator()
    with tf.Graph().as_default(), tf.compat.v1.Session() as session:
        outputs = operation(
            pipeline=annotated(root, annotations),
            shapes=[(BATCH, SIZE, SIZE, 3), (), (), (BATCH, 1)],
            dtypes=[tf.uint8, tf.float32, tf.int32, tf.int32],
            sparse=[False, True, True, False],
        )
        return [session.run(outputs) for _ in range(steps)]
