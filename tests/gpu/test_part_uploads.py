"""Only what a resize on the GPU reads of an image is decoded on the CPU and copied."""

from __future__ import annotations

from pathlib import Path

import cv2
import numpy as np
import pytest

from penstock import Pipeline, fn, types
from penstock.errors import BadSampleError, PenstockError
from penstock.kernels.cpu.decode import pixels
from penstock.kernels.gpu import transfer

COUNT = 9


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(5)
    for number in range(COUNT):
        extents = (int(rng.integers(60, 200)), int(rng.integers(60, 200)), 3)
        image = cv2.GaussianBlur(rng.integers(0, 255, extents, np.uint8), (7, 7), 2)
        name = f"{number:02}.{'png' if number % 4 == 3 else 'jpg'}"
        assert cv2.imwrite(str(folder / name), image)
    return sorted(str(p) for p in folder.iterdir())


RESIZES = {
    "random": lambda x: fn.random_resized_crop(x, size=(24, 20), random_area=(0.1, 0.4)),
    "random, cubic": lambda x: fn.random_resized_crop(
        x, size=48, random_area=(0.05, 0.3), interp_type=types.INTERP_CUBIC
    ),
    "random, Lanczos, no antialiasing, float": lambda x: fn.random_resized_crop(
        x,
        size=(9, 90),
        interp_type=types.INTERP_LANCZOS3,
        antialias=False,
        dtype=types.FLOAT,
    ),
    "random, nearest": lambda x: fn.random_resized_crop(
        x, size=(30, 31), random_area=(0.1, 0.9), interp_type=types.INTERP_NN
    ),
    "random, Gaussian": lambda x: fn.random_resized_crop(
        x, size=(16, 12), interp_type=types.INTERP_GAUSSIAN
    ),
    "region": lambda x: fn.resize(
        x, size=(20, 30), roi_start=(0.2, 0.3), roi_end=(0.5, 0.9), roi_relative=True
    ),
    "flipped region": lambda x: fn.resize(
        x, size=(20, 30), roi_start=(50, 40), roi_end=(10, 30), interp_type=types.INTERP_CUBIC
    ),
    "region that leaves the image": lambda x: fn.resize(
        x, size=(20, 30), roi_start=(-20, 50), roi_end=(10, 500)
    ),
    "window": lambda x: fn.resize_crop_mirror(
        x, resize_shorter=90, crop=(30, 20), crop_pos_x=0.1, crop_pos_y=0.9, mirror=3
    ),
    "all": lambda x: fn.resize(x, size=(32, 32)),
    "random, crop": lambda x: fn.crop(
        fn.random_resized_crop(x, size=(24, 20)), crop=(10, 11), crop_pos_x=0.3
    ),
    "random, larger crop": lambda x: fn.crop(
        fn.random_resized_crop(x, size=(24, 20), random_area=(0.1, 0.3)),
        crop=(40, 11),
        out_of_bounds_policy="reflect",
    ),
    "random, one channel": lambda x: fn.slice(
        fn.random_resized_crop(x, size=(24, 20), random_area=(0.1, 0.3)),
        start=(5, 6, 1),
        shape=(10, 9, 1),
        axes=(0, 1, 2),
    ),
    "random, flip": lambda x: fn.flip(
        fn.random_resized_crop(x, size=(24, 20), random_area=(0.1, 0.3)), horizontal=1, vertical=1
    ),
    "random, normalised": lambda x: fn.crop_mirror_normalize(
        fn.random_resized_crop(x, size=(24, 20), random_area=(0.1, 0.3)),
        dtype=types.FLOAT16,
        output_layout="CHW",
        mean=[120.0, 115.0, 100.0],
        std=[58.0, 57.0, 57.0],
        mirror=fn.random.coin_flip(),
    ),
    "random, rotated": lambda x: fn.rotate(fn.random_resized_crop(x, size=(24, 20)), angle=20.0),
}


def outputs(graph, files, *, fuse=True, decoder=None, policy="raise", runs=3, seed=3, **traits):
    """The batches of a few iterations, and where each sample came from."""
    pipe = Pipeline(
        batch_size=4, num_threads=2, device_id=0, seed=seed, fuse=fuse, on_bad_sample=policy
    )
    with pipe:
        encoded, _ = fn.readers.file(files=files, name="reader")
        pipe.set_outputs(graph(fn.decoders.image(encoded, **traits).gpu()))
    pipe.build()
    found = []
    for _ in range(runs):
        (batch,) = pipe.run()
        host = batch.as_cpu()
        found += [np.array(host.at(i)) for i in range(len(host))]
    return found


class Decoded:
    """What was decoded and copied."""

    def __init__(self) -> None:
        self.regions: list[object] = []
        self.bytes = 0


@pytest.fixture
def decoded(monkeypatch):
    seen = Decoded()
    decode, to_device = pixels.decode, transfer.to_device

    def counted(data, header, wanted, region, empty, temp):
        seen.regions.append(region)
        return decode(data, header, wanted, region, empty, temp)

    def uploaded(queue, rows, dense=None):
        seen.bytes += sum(row.nbytes for row in rows)
        return to_device(queue, rows, dense)

    monkeypatch.setattr("penstock.operators.image.decode_image.decode", counted)
    monkeypatch.setattr(transfer, "to_device", uploaded)
    return seen


@pytest.mark.sanitize
@pytest.mark.parametrize("name", RESIZES)
def test_as_with_all_pixels(files, name):
    fused = outputs(RESIZES[name], files)
    plain = outputs(RESIZES[name], files, fuse=False)
    for a, b in zip(fused, plain, strict=True):
        np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "traits",
    [
        {"output_type": types.GRAY},
        {"output_type": types.YCbCr},
        {"dtype": types.FLOAT},
        {"dtype": types.UINT16},
        {"dtype": types.INT16},
        {"adjust_orientation": False},
    ],
    ids=str,
)
def test_kinds_of_pixels(files, traits):
    fused = outputs(RESIZES["random"], files, **traits)
    plain = outputs(RESIZES["random"], files, fuse=False, **traits)
    for a, b in zip(fused, plain, strict=True):
        np.testing.assert_array_equal(a, b)


def test_turned_images(tmp_path):
    rng = np.random.default_rng(8)
    paths = []
    for orientation in range(1, 9):
        image = cv2.GaussianBlur(rng.integers(0, 255, (90, 140, 3), np.uint8), (7, 7), 2)
        jpeg = cv2.imencode(".jpg", image)[1].tobytes()
        entry = b"\x01\x12\x00\x03\x00\x00\x00\x01\x00" + bytes([orientation]) + b"\x00\x00"
        tiff = b"MM\x00*\x00\x00\x00\x08\x00\x01" + entry + b"\x00\x00\x00\x00"
        exif = b"Exif\x00\x00" + tiff
        header = b"\xff\xd8\xff\xe1" + (len(exif) + 2).to_bytes(2, "big") + exif
        path = tmp_path / f"{orientation}.jpg"
        path.write_bytes(header + jpeg[2:])
        paths.append(str(path))
    fused = outputs(RESIZES["random"], paths)
    plain = outputs(RESIZES["random"], paths, fuse=False)
    for a, b in zip(fused, plain, strict=True):
        np.testing.assert_array_equal(a, b)


def test_less_is_decoded_and_copied(files, decoded):
    outputs(RESIZES["random"], files)
    assert None not in decoded.regions
    less = decoded.bytes
    decoded.regions.clear()
    decoded.bytes = 0
    outputs(RESIZES["random"], files, fuse=False)
    assert set(decoded.regions) == {None}
    assert less < decoded.bytes / 2


@pytest.mark.parametrize(
    "graph",
    [
        lambda x: (fn.random_resized_crop(x, size=24), x),
        lambda x: (fn.random_resized_crop(x, size=24), fn.resize(x, size=(9, 9))),
        lambda x: (fn.flip(x),),
        lambda x: (fn.resize(x, size=(20, 20), roi_start=(1, 2), roi_end=fn.random.uniform(
            range=(20, 50), shape=(2,))),),
    ],
    ids=["an output, too", "two readers", "no resize", "arguments that differ"],
)  # fmt: skip
def test_where_all_is_read(files, graph, decoded):
    pipe = Pipeline(batch_size=4, num_threads=2, device_id=0, seed=3)
    with pipe:
        encoded, _ = fn.readers.file(files=files, name="reader")
        pipe.set_outputs(*graph(fn.decoders.image(encoded).gpu()))
    pipe.build()
    pipe.run()
    assert set(decoded.regions) == {None}


def damaged(files, tmp_path, number, content):
    found = list(files)
    path = tmp_path / "damaged.jpg"
    path.write_bytes(content)
    found[number] = str(path)
    return found


@pytest.mark.parametrize("content", [b"no image", "half"], ids=["no image", "half an image"])
def test_bad_files(files, tmp_path, content):
    if content == "half":
        whole = Path(files[4]).read_bytes()
        content = whole[: len(whole) // 2]
    damaged_files = damaged(files, tmp_path, 4, content)
    for fuse in (True, False):
        with pytest.raises(BadSampleError, match=r"decoders\.image"):
            outputs(RESIZES["random"], damaged_files, fuse=fuse)
    for policy in ("skip", "replace"):
        fused = outputs(RESIZES["random"], damaged_files, policy=policy)
        plain = outputs(RESIZES["random"], damaged_files, policy=policy, fuse=False)
        for a, b in zip(fused, plain, strict=True):
            np.testing.assert_array_equal(a, b)


@pytest.mark.parametrize(
    "graph",
    [
        lambda x: fn.resize(x, size=(20, 20), roi_start=(0.1, 0.1), roi_end=(float("nan"), 0.2)),
        lambda x: fn.random_resized_crop(x, size=(0, 3)),
    ],
    ids=["of every sample", "of the operator"],
)
def test_errors_are_those_of_the_resize(files, graph):
    texts = []
    for fuse in (True, False):
        with pytest.raises(PenstockError) as caught:
            outputs(graph, files, fuse=fuse)
        texts.append(str(caught.value))
    assert texts[0] == texts[1]
    assert "decoders" not in texts[0]


def test_any_number_of_threads(files):
    results = []
    for threads in (1, 3):
        pipe = Pipeline(batch_size=5, num_threads=threads, device_id=0, seed=9)
        with pipe:
            encoded, _ = fn.readers.file(files=files, random_shuffle=True, name="reader")
            pipe.set_outputs(RESIZES["random"](fn.decoders.image(encoded).gpu()))
        pipe.build()
        results.append([pipe.run()[0].as_cpu() for _ in range(4)])
    for one, three in zip(*results, strict=True):
        for i in range(len(one)):
            np.testing.assert_array_equal(one.at(i), three.at(i))
