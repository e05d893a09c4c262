"""Files onto the GPU: decoders ahead of other operators, and bad files among good ones."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from tests.support.images import encoded

COUNT = 10


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(5)
    for number in range(COUNT):
        image = cv2.GaussianBlur(rng.integers(0, 255, (40 + number, 50, 3), np.uint8), (5, 5), 2)
        name = f"{number:02}.{'png' if number % 4 == 3 else 'jpg'}"
        assert cv2.imwrite(str(folder / name), image)
    return sorted(str(p) for p in folder.iterdir())


def with_bad_ones(files, tmp_path):
    """The files, of which numbers 2 and 5 are damaged beyond repair."""
    found = list(files)
    for number, content in ((2, b"no image"), (5, Path(files[5]).read_bytes()[:200])):
        path = tmp_path / f"bad{number}.jpg"
        path.write_bytes(content)
        found[number] = str(path)
    return found


@pipeline_def(num_threads=2, seed=3)
def training(files, device):
    encoded, labels = fn.readers.file(files=files, labels=list(range(len(files))), name="reader")
    images = fn.decoders.image(encoded, device=device, jpeg_fancy_upsampling=True)
    images = fn.random_resized_crop(images, size=(24, 24), random_area=(0.3, 1.0))
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[120.0, 115.0, 100.0],
        std=[58.0, 57.0, 57.0],
        mirror=fn.random.coin_flip(),
    )
    return images, labels.gpu() if device == "mixed" else labels


def on_host(batch):
    host = batch.as_cpu()
    return [host.at(i) for i in range(len(host))]


def test_as_on_the_cpu(files):
    there = training(files, "mixed", batch_size=4, device_id=0)
    here = training(files, "cpu", batch_size=4, device_id=None)
    for _ in range(6):
        (images, labels), (expected, expected_labels) = there.run(), here.run()
        assert [int(v[0]) for v in on_host(labels)] == [
            int(expected_labels.at(i)[0]) for i in range(4)
        ]
        for one, other in zip(on_host(images), on_host(expected), strict=True):
            # Decoders of a GPU differ by up to 3 levels (see `tests.support.gpu.decoding`), and
            # resizing rounds; of the standard deviations of `training` that is a sixteenth.
            assert np.abs(one - other).mean() < 0.3 / 57
            assert np.abs(one - other).max() < 4.1 / 57


def test_a_bad_file_ends_the_run_and_is_named(files, tmp_path):
    pipe = training(with_bad_ones(files, tmp_path), "mixed", batch_size=4, device_id=0)
    with pytest.raises(RuntimeError, match=r"sample 2 of the batch, read from .*bad2\.jpg"):
        pipe.run()


def test_bad_files_are_skipped(files, tmp_path):
    pipe = training(
        with_bad_ones(files, tmp_path),
        "mixed",
        batch_size=4,
        device_id=0,
        on_bad_sample="skip",
        prefetch_queue_depth=2,
    )
    seen = []
    for _ in range(4):
        images, labels = pipe.run()
        assert len(on_host(images)) == 4
        seen += [int(v[0]) for v in on_host(labels)]
    assert not {2, 5} & set(seen)
    good = [n for n in range(COUNT) if n not in (2, 5)]
    assert sorted(seen[: len(good)]) == good
    assert {b.source.rpartition("/")[2] for b in pipe.bad_samples} == {"bad2.jpg", "bad5.jpg"}
    assert {b.action for b in pipe.bad_samples} == {"skip"}


def test_bad_files_are_replaced(files, tmp_path):
    bad = with_bad_ones(files, tmp_path)
    pipe = training(bad, "mixed", batch_size=4, device_id=0, on_bad_sample="replace")
    first, second = pipe.run(), pipe.run()
    assert [int(v[0]) for v in on_host(first[1])] == [0, 1, 1, 3]
    assert [int(v[0]) for v in on_host(second[1])] == [4, 4, 6, 7]
    assert len(on_host(second[0])) == 4


def test_all_of_a_batch_is_bad(files, tmp_path):
    bad = with_bad_ones(files, tmp_path)
    pipe = training([files[0], bad[2], bad[5]], "mixed", batch_size=1, device_id=0)
    pipe.run()
    with pytest.raises(RuntimeError):
        pipe.run()
    pipe = training(
        [files[0], bad[2], bad[5]], "mixed", batch_size=1, device_id=0, on_bad_sample="replace"
    )
    assert [int(on_host(pipe.run()[1])[0][0]) for _ in range(3)] == [0, 0, 0]


@pytest.mark.parametrize("fed_to", ["cpu", "gpu"])
def test_what_is_fed_and_drawn_goes_with_the_image_that_takes_the_place_of_a_bad_one(fed_to):
    files = [encoded(20 + k, 30, seed=k) for k in range(4)]
    files[2] = np.frombuffer(b"not an image", np.uint8)

    @pipeline_def(batch_size=4, num_threads=2, device_id=0, on_bad_sample="replace", seed=2)
    def p():
        data = fn.external_source(lambda: files)
        labels = fn.external_source(lambda: np.arange(4, dtype=np.int32), device=fed_to)
        draws = fn.random.uniform(range=(0, 1))
        images = fn.decoders.image(data, device="mixed")
        shapes = data.shape(dtype=types.INT32)
        turned = fn.permute_batch(labels.gpu(), indices=[3, 2, 1, 0])
        later = labels.gpu() + 1
        return images, labels, later, draws, draws.gpu(), images[:, :, :1], shapes, turned

    pipe = p()
    for _ in range(2):
        images, labels, later, draws, uploaded, parts, _, turned = map(on_host, pipe.run())
        assert [len(image) for image in images] == [20, 21, 21, 23]
        np.testing.assert_array_equal(images[2], images[1])
        np.testing.assert_array_equal(parts[2], images[1][:, :, :1])
        assert [int(v) for v in labels] == [0, 1, 1, 3]
        assert [int(v) for v in later] == [1, 2, 2, 4]
        # Sample 2 had the label of sample 1 before the batch was turned around.
        assert [int(v) for v in turned] == [3, 1, 1, 0]
        assert [float(v) for v in draws] == [float(v) for v in uploaded]
        assert float(draws[1]) == float(draws[2])
