"""What is read for several samples, and handed on to operators in the same stage."""

from __future__ import annotations

import cv2
import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.errors import BadSampleError

COUNT = 11


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(5)
    for number in range(COUNT):
        image = rng.integers(0, 255, (20 + number, 30, 3), np.uint8)
        assert cv2.imwrite(str(folder / f"{number:02}.png"), image)
    return sorted(str(path) for path in folder.iterdir())


def built(files, threads=2, policy="raise", fuse=True):
    pipe = Pipeline(
        batch_size=8,
        num_threads=threads,
        device_id=None,
        seed=3,
        on_bad_sample=policy,
        fuse=fuse,
    )
    with pipe:
        encoded, labels = fn.readers.file(
            files=files, labels=[7 * k for k in range(len(files))], name="reader"
        )
        images = fn.decoders.image(encoded)
        pipe.set_outputs(images, encoded, labels, labels * 2, fn.crop(images, crop=(9, 9)))
    pipe.build()
    return pipe


@pytest.mark.parametrize("fuse", [True, False])
@pytest.mark.parametrize("threads", [1, 3])
def test_everything_arrives(files, threads, fuse):
    pipe = built(files, threads, fuse=fuse)
    for run in range(3):
        images, encoded, labels, doubled, crops = pipe.run()
        for i in range(8):
            k = (8 * run + i) % COUNT
            image = cv2.imread(files[k])[..., ::-1]
            np.testing.assert_array_equal(images.at(i), image)
            y = (image.shape[0] - 9) // 2
            np.testing.assert_array_equal(crops.at(i).shape, (9, 9, 3))
            assert (crops.at(i)[0, 0] == image[y : y + 2, 10:12]).all(axis=-1).any()
            np.testing.assert_array_equal(encoded.at(i), np.fromfile(files[k], np.uint8))
            assert labels.at(i).tolist() == [7 * k]
            assert doubled.at(i).tolist() == [14 * k]
            assert images[i].source_info() == encoded[i].source_info() == files[k]
            assert labels[i].source_info() == files[k]
        assert labels.is_dense_tensor()


def test_some_cannot_be_read(files, tmp_path):
    empty = tmp_path / "empty.png"
    empty.write_bytes(b"")
    missing = str(tmp_path / "missing.png")
    mixed = [files[0], missing, *files[1:4], str(empty), *files[4:]]
    with pytest.raises(BadSampleError, match=r"missing\.png' does not exist"):
        built(mixed).run()
    pipe = built(mixed, policy="skip")
    for _ in range(3):
        images, _, labels, doubled, _ = pipe.run()
        for i in range(8):
            path = mixed[labels.at(i)[0] // 7]
            assert images[i].source_info() == path
            np.testing.assert_array_equal(images.at(i), cv2.imread(path)[..., ::-1])
            assert doubled.at(i) == 2 * labels.at(i)
    assert {bad.source for bad in pipe.bad_samples} == {missing, str(empty)}
