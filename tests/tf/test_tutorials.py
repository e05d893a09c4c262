"""What DALI's tutorials for TensorFlow do runs after ``nvidia.dali`` is replaced by ``penstock``.

The programs in `programs/` do the same in other words, on a machine without a GPU. Those of
DALI's that read LMDB, TFRecord, RecordIO or COCO read files here; TensorFlow has no `tf.estimator`
any more.
"""

from __future__ import annotations

import sys
from pathlib import Path
from types import ModuleType

import numpy as np
import pytest
import tensorflow as tf
from PIL import Image
from sklearn.datasets import load_digits

from penstock import errors
from tests.support.images import class_folders, encoded

PROGRAMS = Path(__file__).parent / "programs"
COUNT = 600

# Keras's, of its own default for datasets, and of dictionaries for models of one input.
pytestmark = pytest.mark.filterwarnings("ignore::UserWarning:keras.*")


def program(name):
    path = PROGRAMS / f"{name}.py"
    made = ModuleType(f"{name} of a tutorial")
    sys.modules[made.__name__] = made  # TensorFlow looks up the modules of functions
    text = path.read_text().replace("nvidia.dali", "penstock")
    exec(compile(text, str(path), "exec"), vars(made))
    return made


@pytest.fixture(scope="module")
def digits(tmp_path_factory):
    """Handwritten digits in a folder for each class."""
    root = tmp_path_factory.mktemp("digits")
    found = load_digits()
    for k, (image, label) in enumerate(zip(found.images[:COUNT], found.target, strict=False)):
        folder = root / str(label)
        folder.mkdir(exist_ok=True)
        picture = Image.fromarray((image * 15).astype(np.uint8)).resize((28, 28))
        picture.save(folder / f"{k:04}.jpg", quality=95)
    return str(root)


@pytest.fixture(scope="module")
def photos(tmp_path_factory):
    root = tmp_path_factory.mktemp("photos")
    class_folders(root, 23)
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
