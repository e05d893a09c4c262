"""Images that announce more pixels than anybody wants."""

from __future__ import annotations

import struct
import zlib

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn
from headrace.errors import ArgumentValueError, BadSampleError
from headrace.kernels.cpu.decode.header import read_header
from headrace.operators.support.decode import image_decoder
from tests.support.encoded_images import everything, jpegs

DECODERS = {
    "image": {},
    "image_crop": {"crop": (5, 5)},
    "image_random_crop": {},
    "image_slice": {"rel_start": (0.2, 0.2), "rel_end": (0.5, 0.5)},
}


def bomb(side=20_000):
    """A PNG of so many gray pixels in far fewer bytes."""

    def chunk(name, data):
        return (
            struct.pack(">I", len(data)) + name + data + struct.pack(">I", zlib.crc32(name + data))
        )

    header = struct.pack(">IIBBBBB", side, side, 1, 0, 0, 0, 0)
    packer = zlib.compressobj(9)
    row = bytes(1 + side // 8)
    rows = b"".join([packer.compress(row) for _ in range(side)]) + packer.flush()
    return (
        b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    )


def array(data):
    return np.frombuffer(data, np.uint8)


def decode(files, name="image", policy="raise", batches=1, **arguments):
    pipe = Pipeline(len(files), 2, None, on_bad_sample=policy, seed=1)
    with pipe:
        encoded, labels = fn.readers.file(files=files)
        pipe.set_outputs(getattr(fn.decoders, name)(encoded, **arguments), labels)
    for _ in range(batches):
        images, labels = pipe.run()
    return [np.array(label)[0] for label in labels], list(pipe.bad_samples), images


@pytest.mark.parametrize("name", DECODERS)
def test_files_of_more_are_bad_samples(tmp_path, name):
    files = []
    for k, data in enumerate((jpegs()["jpeg-4:2:0"], bomb(), jpegs()["jpeg-gray"])):
        files.append(str(tmp_path / f"{k}.img"))
        (tmp_path / f"{k}.img").write_bytes(data)
    words = r"20000 x 20000 pixels, and `max_pixels` lets 1,000,000 through"
    with pytest.raises(BadSampleError, match=rf"{words}[^$]*1\.img"):
        decode(files, name, max_pixels=1_000_000, **DECODERS[name])
    labels, bad, _ = decode(files, name, "replace", max_pixels=1_000_000, **DECODERS[name])
    assert labels == [0, 0, 2]
    assert {sample.source for sample in bad} == {files[1]}
    labels, _, _ = decode(files, name, "skip", max_pixels=1_000_000, **DECODERS[name])
    assert 1 not in labels


def test_every_format_at_the_limit():
    for data in everything().values():
        header = read_header(memoryview(data))
        pixels = header.height * header.width
        if pixels == 1:
            continue
        try:
            ndd.decoders.image(array(data), max_pixels=pixels).evaluate()
        except BadSampleError as error:  # of kinds that cannot be decoded
            assert "lets" not in str(error)  # noqa: PT017
        with pytest.raises(BadSampleError, match="`max_pixels` lets"):
            ndd.decoders.image(array(data), max_pixels=pixels - 1).evaluate()


def test_everywhere(tmp_path):
    path = tmp_path / "a.jpg"
    path.write_bytes(jpegs()["jpeg-4:2:0"])
    with pytest.raises(BadSampleError, match="`max_pixels` lets"):
        ndd.imread(str(path), max_pixels=10).evaluate()
    with pytest.raises(ArgumentValueError, match="`max_pixels` is 0, but must be at least 1"):
        decode([str(path)], max_pixels=0)


@pytest.mark.in_threads
@pytest.mark.parametrize("name", DECODERS)
def test_one_warning_names_file_and_argument(tmp_path, monkeypatch, name):
    monkeypatch.setattr(image_decoder, "SUSPICIOUS_PIXELS", 53 * 37 - 1)
    monkeypatch.setattr(image_decoder, "_warned", bytearray(1))
    files = []
    for k in range(3):
        files.append(str(tmp_path / f"{k}.jpg"))
        (tmp_path / f"{k}.jpg").write_bytes(jpegs()["jpeg-4:2:0"])
    decode(files, name, max_pixels=53 * 37, **DECODERS[name])  # the user knows
    with pytest.warns(UserWarning, match=r"\d\.jpg is an image of 37 x 53 .*`max_pixels`") as found:
        decode(files, name, batches=3, **DECODERS[name])
    assert len(found) == 1
    decode(files, name, **DECODERS[name])
    assert image_decoder._warned[0] == 1


def test_the_limit_of_pillow():
    from PIL import Image

    assert image_decoder.SUSPICIOUS_PIXELS == Image.MAX_IMAGE_PIXELS
