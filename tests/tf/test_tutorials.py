"""What DALI's tutorials for TensorFlow do runs after ``nvidia.dali`` is replaced by ``headrace``.

The programs in `programs/` do the same in other words, on a machine without a GPU, from the same
kinds of files: LMDB of Caffe's and Caffe2's records, TFRecord, RecordIO, and images with COCO's
annotations.
TensorFlow has no `tf.estimator` any more.
"""

from __future__ import annotations

import json
import struct
import sys
from pathlib import Path
from types import ModuleType

import cv2
import numpy as np
import pytest
import tensorflow as tf
from sklearn.datasets import load_digits

from headrace import Pipeline, errors, fn
from headrace.plugin.tf import DALIDataset
from tests.support.caffe_records import STRING, datum, field, ints, record, tensor, write
from tests.support.images import encoded

PROGRAMS = Path(__file__).parent / "programs"
COUNT = 600

# Keras's, of its own default for datasets, and of dictionaries for models of one input.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:keras.*")


def program(name):
    path = PROGRAMS / f"{name}.py"
    made = ModuleType(f"{name} of a tutorial")
    sys.modules[made.__name__] = made  # TensorFlow looks up the modules of functions
    text = path.read_text().replace("nvidia.dali", "headrace")
    exec(compile(text, str(path), "exec"), vars(made))
    return made


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Handwritten digits in a data base of Caffe2's records."""
    found = load_digits()
    records = []
    for image, label in zip(found.images[:COUNT], found.target, strict=False):
        large = cv2.resize((image * 15).astype(np.uint8), (28, 28), interpolation=cv2.INTER_CUBIC)
        jpeg = cv2.imencode(".jpg", large)[1].tobytes()
        records.append(record(tensor(STRING, [1], field(6, jpeg)), ints(int(label))))
    return write(tmp_path_factory.mktemp("digits"), records)


def jpeg(number):
    return encoded(60 + number % 7, 80 - number % 5, seed=number).tobytes()


def of(**values):
    """A feature of an `Example`."""
    lists = {"bytes_list": "BytesList", "int64_list": "Int64List", "float_list": "FloatList"}
    return tf.train.Feature(**{k: getattr(tf.train, lists[k])(value=v) for k, v in values.items()})


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    """Photographs in a TFRecord file with its index."""
    root = tmp_path_factory.mktemp("photos")
    places, begin = [], 0
    path = root / "photographs.tfrecord"
    with tf.io.TFRecordWriter(str(path)) as writer:
        for k in range(23):
            feature = {
                "image/encoded": of(bytes_list=[jpeg(k)]),
                "image/class/label": of(int64_list=[k % 3]),
                "image/object/bbox/xmin": of(float_list=[0.25] * (k % 2)),
            }
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())
            writer.flush()
            places.append(f"{begin} {path.stat().st_size - begin}\n")
            begin = path.stat().st_size
    (root / "photographs.idx").write_text("".join(places))
    return str(root)


def test_a_dataset_for_keras(digits):
    digits_of = program("digits")
    tf.keras.utils.set_random_seed(3)
    assert digits_of.keras(digits, "cpu") > 0.9
    assert digits_of.keras_with_names(digits) > 0.7


def test_a_dataset_for_a_graph(digits):
    assert program("digits").graph(digits, "cpu") > 0.9


def test_a_dataset_for_each_replica(digits):
    accuracy, shards = program("digits").mirrored(digits, ["/cpu:0", "/cpu:1"])
    assert accuracy > 0.7
    assert shards == [0, 1]


def test_where_there_is_no_gpu(digits, photos):
    """What the tutorials put on a GPU: the answer says what to do."""
    digits_of, photographs = program("digits"), program("photographs")
    with pytest.raises(errors.UsageError, match=r"output 0\. Datasets.*`\.cpu\(\)`"):
        digits_of.keras(digits, "gpu")
    with pytest.raises(errors.GpuNotAvailableError, match="GPU"):
        digits_of.keras(digits, "gpu", fail_on_device_mismatch=False)
    with pytest.raises(errors.GpuNotAvailableError, match="GPU"):
        photographs.in_a_session(photos, 1, dali_cpu=False)
    with pytest.raises(errors.UsageError, match=r"output 0\. Datasets.*`\.cpu\(\)`"):
        program("inputs").records("unread.tfrecord", "gpu")


def test_inputs_from_other_datasets(tmp_path):
    inputs = program("inputs")
    path = str(tmp_path / "images.tfrecord")
    with tf.io.TFRecordWriter(path) as writer:
        for k in range(6):
            data = tf.train.BytesList(value=[encoded(60 + k, 80 - k, seed=k).tobytes()])
            feature = {"image/encoded": tf.train.Feature(bytes_list=data)}
            example = tf.train.Example(features=tf.train.Features(feature=feature))
            writer.write(example.SerializeToString())
    found = inputs.records(path)
    assert [batch.shape for batch in found] == [(2, 30, 50, 3)] * 3
    for k, image in enumerate(np.concatenate(found)):
        decoded = tf.io.decode_jpeg(encoded(60 + k, 80 - k, seed=k).tobytes()).numpy()
        wanted = tf.image.resize(decoded, (30, 50), antialias=True)
        assert np.abs(image - wanted).mean() < 3
    first = np.arange(4 * 6 * 6 * 3, dtype=np.uint8).reshape(4, 6, 6, 3)
    blended = inputs.two_inputs(first, first[::-1].copy())
    wanted = first[:, 1:5, 1:5] // 2 + first[::-1, 1:5, 1:5] // 2
    assert np.array_equal(np.concatenate(blended), wanted)


def test_python_sources():
    found = program("inputs").python_sources()
    assert [numbers.ravel().tolist() for numbers, _ in found] == [
        [2 * k, 2 * k + 1] for k in range(5)
    ]
    assert [batch[0, 0] for _, batch in found] == [0, 1, 2, 0, 1]


def test_an_operation_and_a_dataset_for_a_residual_network(photos):
    photographs = program("photographs")
    tf.keras.utils.set_random_seed(3)
    found = photographs.in_a_session(photos, 6, training=False)
    labels = np.concatenate([labels for _, labels in found])
    assert {images.shape for images, _ in found} == {(4, 32, 48, 3)}
    assert labels.shape == (24, 1)
    assert sorted(labels[:23].ravel().tolist()) == [-1] * 8 + [0] * 8 + [1] * 7
    assert all(-3 < images.mean() < 3 and images.std() > 0.2 for images, _ in found)
    losses = photographs.in_keras(photos, 6)
    assert np.isfinite(losses).all()


def test_operations_on_record_io(tmp_path):
    data, places = b"", []
    for k in range(16):
        content = struct.pack("<IfQQ", 0, k, k, 0) + jpeg(k)
        places.append(f"{k}\t{len(data)}\n")
        data += struct.pack("<II", 0xCED7230A, len(content)) + content + b"\0" * (-len(content) % 4)
    (tmp_path / "photos.rec").write_bytes(data)
    (tmp_path / "photos.idx").write_text("".join(places))
    found = program("records").recordio(
        str(tmp_path / "photos.rec"), str(tmp_path / "photos.idx"), 2
    )
    for step, (_, first, images, second) in enumerate(found):
        assert first.ravel().tolist() == list(range(4 * step, 4 * step + 4))
        assert second.ravel().tolist() == list(range(8 + 4 * step, 12 + 4 * step))
        assert images.shape == (4, 3, 16, 16)
        assert images.std() > 0.2


def test_a_dataset_of_caffes_records(tmp_path):
    """What the tutorial on readers puts into an operation, in a dataset of each shard."""
    write(tmp_path, [datum(jpeg(k), k, field(7, 1)) for k in range(8)])
    labels = []
    for shard in range(2):
        pipe = Pipeline(4, 2, None)
        with pipe:
            files, numbers = fn.readers.caffe(
                path=str(tmp_path), random_shuffle=True, shard_id=shard, num_shards=2, name="all"
            )
            images = fn.resize(fn.decoders.image(files), size=(24, 24))
            pipe.set_outputs(images, numbers)
        dataset = DALIDataset(
            pipe,
            (tf.uint8, tf.int32),
            ((4, 24, 24, 3), (4,)),
            batch_size=4,
            device_id=None,
            reader_name="all",
        )
        ((images, numbers),) = dataset
        for image, number in zip(images.numpy(), numbers.numpy(), strict=True):
            wanted = tf.image.resize(tf.io.decode_jpeg(jpeg(number)), (24, 24), antialias=True)
            assert np.abs(image - wanted).mean() < 3
        labels += numbers.numpy().tolist()
    assert sorted(labels) == list(range(8))


def test_boxes_of_coco_are_sparse(tmp_path):
    sizes = {}
    for k in range(4):
        (tmp_path / f"{k}.jpg").write_bytes(jpeg(k))
        sizes[k] = {"width": 80 - k, "height": 60 + k}
    boxes = [(k, j) for k in range(4) for j in range(k)]  # the first image has none
    annotations = {
        "images": [{"id": k, "file_name": f"{k}.jpg"} | sizes[k] for k in range(4)],
        "categories": [{"id": 7, "name": "a"}, {"id": 9, "name": "b"}],
        "annotations": [
            {"id": n, "image_id": k, "category_id": (7, 9)[j % 2], "bbox": [8, j, 4, 12]}
            | {"iscrowd": 0}
            for n, (k, j) in enumerate(boxes)
        ],
    }
    (tmp_path / "all.json").write_text(json.dumps(annotations))
    ((images, found, labels, ids),) = program("records").sparse_boxes(
        str(tmp_path), str(tmp_path / "all.json"), 1
    )
    assert images.shape == (4, 24, 24, 3)
    assert sorted(ids.ravel().tolist()) == list(range(4))
    wanted = np.zeros((4, 3, 4), np.float32)
    names = np.zeros((4, 3), np.int32)
    for row, k in enumerate(ids.ravel().tolist()):
        across = np.array([1 / sizes[k][side] for side in ("width", "height")] * 2)
        for j in range(k):
            wanted[row, j] = np.array([8, j, 12, j + 12]) * across
            names[row, j] = 1 + j % 2  # categories have numbers from 1 on
    for sparse, dense in ((found, wanted), (labels, names)):
        there = np.zeros_like(dense)
        there[tuple(sparse.indices.T)] = sparse.values
        assert np.allclose(there, dense, atol=1e-6)
