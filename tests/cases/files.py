"""Writes a folder with small files of every kind that a reader reads."""

from __future__ import annotations

import io
import json
import struct
import tarfile
from pathlib import Path

import numpy as np

from tests.cases.data import VIDEOS, encoded, wave_files
from tests.support import caffe_records as wire


def write_files(root: Path, jpegs: list[bytes] | None = None) -> None:
    """All of them, with three images of `jpegs`."""
    jpegs = jpegs or [data.tobytes() for data in encoded()]
    for k, data in enumerate(jpegs * 2):
        _write(root / "images" / "ab"[k % 2] / f"{k}.jpg", data)
    for k in range(4):
        array = np.arange(6 * (k + 2), dtype=np.int32).reshape(3, -1)
        (root / "arrays").mkdir(exist_ok=True)
        np.save(root / "arrays" / f"{k}.npy", array)
    wire.write(root / "caffe", [wire.datum(d, k) for k, d in enumerate(jpegs)])
    images = [wire.tensor(wire.STRING, [1], wire.field(6, d)) for d in jpegs]
    wire.write(root / "caffe2", [wire.record(d, wire.ints(k)) for k, d in enumerate(images)])
    _write_coco(root)
    _write_records(root, jpegs)
    _write_speech(root)
    _write_tfrecord(root, jpegs)
    _write_web(root, jpegs)
    _write_fits(root)
    for path in VIDEOS.iterdir():
        _write(root / path.name, path.read_bytes())


def _write(path: Path, data: bytes) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(data)


def _write_coco(root: Path) -> None:
    names = sorted(p.name for p in (root / "images/a").iterdir())
    images = [
        {"id": k, "file_name": name, "width": 56, "height": 40} for k, name in enumerate(names)
    ]
    annotations = [
        {
            "id": k,
            "image_id": k % len(names),
            "category_id": 5 - k % 2,
            "bbox": [1.5 * k, 2, 10, 20.25],
            "iscrowd": 0,
            "segmentation": [[1, 2, 3, 4, 5, 6.5 + k]],
        }
        for k in range(5)
    ]
    kinds = [{"id": 4, "name": "x"}, {"id": 5, "name": "y"}]
    text = json.dumps({"images": images, "categories": kinds, "annotations": annotations})
    (root / "coco.json").write_text(text)


def _write_records(root: Path, jpegs: list[bytes]) -> None:
    data, places = b"", []
    for k, image in enumerate(jpegs):
        record = struct.pack("<IfQQ", 0, float(k), k, 0) + image
        places.append(f"{k}\t{len(data)}\n")
        data += struct.pack("<II", 0xCED7230A, len(record)) + record + b"\0" * (-len(record) % 4)
    (root / "x.rec").write_bytes(data)
    (root / "x.idx").write_text("".join(places))


def _write_speech(root: Path) -> None:
    lines = []
    for k, data in enumerate(wave_files()):
        _write(root / "speech" / f"{k}.wav", data.tobytes())
        entry = {"audio_filepath": str(root / "speech" / f"{k}.wav"), "duration": 0.2 + k}
        lines.append(json.dumps({**entry, "text": f"number {k}"}) + "\n")
    (root / "speech.json").write_text("".join(lines))


def _write_tfrecord(root: Path, jpegs: list[bytes]) -> None:
    data, lines = b"", []
    for k, image in enumerate(jpegs):
        values = {
            "image": wire.field(1, wire.field(1, image)),
            "label": wire.field(3, wire.field(1, wire.varint(k))),
        }
        entries = [
            wire.field(1, wire.field(1, name.encode()) + wire.field(2, value))
            for name, value in values.items()
        ]
        example = wire.field(1, b"".join(entries))
        length = struct.pack("<Q", len(example))
        record = length + _checksum(length) + example + _checksum(example)
        lines.append(f"{len(data)} {len(record)}\n")
        data += record
    (root / "x.tfrecord").write_bytes(data)
    (root / "x.tfrecord.idx").write_text("".join(lines))


def _checksum(data: bytes) -> bytes:
    """CRC-32C, masked as TFRecord has it."""
    crc = 0xFFFFFFFF
    for byte in data:
        crc ^= byte
        for _ in range(8):
            crc = crc >> 1 ^ (0x82F63B78 if crc & 1 else 0)
    crc ^= 0xFFFFFFFF
    return struct.pack("<I", ((crc >> 15 | crc << 17) + 0xA282EAD8) & 0xFFFFFFFF)


def _write_web(root: Path, jpegs: list[bytes]) -> None:
    with tarfile.open(root / "web.tar", "w", format=tarfile.USTAR_FORMAT) as archive:
        for k, image in enumerate(jpegs):
            for name, data in ((f"{k}.jpg", image), (f"{k}.cls", b"%d" % k)):
                member = tarfile.TarInfo(name)
                member.size = len(data)
                archive.addfile(member, io.BytesIO(data))


def _write_fits(root: Path) -> None:
    from astropy.io import fits

    (root / "fits").mkdir()
    for k in range(3):
        image = np.arange(12 * (k + 1), dtype=np.int16).reshape(3, -1)
        units = [fits.PrimaryHDU(), fits.ImageHDU(image)]
        fits.HDUList(units).writeto(root / "fits" / f"{k}.fits")
