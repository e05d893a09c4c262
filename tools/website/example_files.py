"""Files that examples of the documentation read, made of photographs that come with packages."""

from __future__ import annotations

import json
import shutil
from importlib.util import find_spec
from pathlib import Path

import cv2
import numpy as np

from examples.demo.photographs import photographs
from tests.cases.files import write_files

_DATA = Path(__file__).resolve().parents[2] / "tests/data"


def write(folder: Path) -> None:
    """All of them, below `folder`."""
    pictures = photographs()
    pictures["cat"] = pictures.pop("chelsea")
    square = pictures["astronaut"][:320, 60:380]
    pictures |= {"square": square, "dark": (pictures["china"] * 0.35).astype(np.uint8)}
    for name, picture in pictures.items():
        _write(folder / f"{name}.jpg", picture)
    small = {name: _resized(pictures[name], 120) for name in ("cat", "coffee", "flower", "rocket")}
    for name, picture in small.items():
        _write(folder / "photos" / name / "0.jpg", picture)
    jpegs = [_encoded(picture) for picture in list(small.values())[:3]]
    write_files(folder, jpegs)
    mask = np.zeros(square.shape[:2], np.uint8)
    cv2.ellipse(mask, (160, 110), (62, 84), 0, 0, 360, 1, -1)
    cv2.imwrite(str(folder / "mask.png"), mask)
    _write_boxes(folder, square)
    _write_speech(folder)
    _write_columns(folder, jpegs, small["cat"])
    write_clip(folder / "clip.mp4", pictures["china"])


def is_here(library: str) -> bool:
    """True where `library` can be imported, and is no folder of that name."""
    found = find_spec(library)
    return found is not None and found.origin is not None


def _write_boxes(folder: Path, square: np.ndarray) -> None:
    height, width = square.shape[:2]
    names = {1: "face", 2: "person"}
    boxes = [(98, 26, 124, 168, 1), (0, 0, 320, 320, 2)]
    instances = {
        "images": [{"id": 1, "file_name": "square.jpg", "height": height, "width": width}],
        "categories": [{"id": k, "name": name} for k, name in names.items()],
        "annotations": [
            {"id": k, "image_id": 1, "category_id": c, "bbox": [x, y, w, h], "iscrowd": 0}
            for k, (x, y, w, h, c) in enumerate(boxes)
        ],
    }
    (folder / "instances.json").write_text(json.dumps(instances))


def _write_speech(folder: Path) -> None:
    clips = map(json.loads, (_DATA / "audio/clips.json").read_text().splitlines())
    text = next(c["text"] for c in clips if c["audio_filepath"].endswith("ferry.ogg"))
    shutil.copy(_DATA / "audio/ferry.ogg", folder / "speech.ogg")
    entry = {"audio_filepath": str(folder / "speech.ogg"), "duration": 3.0, "text": text}
    (folder / "manifest.json").write_text(json.dumps(entry) + "\n")


def _write_columns(folder: Path, jpegs: list[bytes], picture: np.ndarray) -> None:
    """The images as columns of every kind, for the libraries that are here."""
    labels = list(range(len(jpegs)))
    if is_here("pyarrow"):
        import pyarrow as pa
        import pyarrow.parquet as pq

        table = pa.table({"image": jpegs, "label": labels})
        pq.write_table(table, folder / "train.parquet")
        with pa.ipc.new_stream(str(folder / "train.arrow"), table.schema) as writer:
            writer.write_table(table)
        if is_here("lance"):
            import lance

            lance.write_dataset(table, str(folder / "train.lance"))
    if is_here("h5py"):
        import h5py

        with h5py.File(folder / "train.h5", "w") as file:
            file["images"], file["labels"] = picture[None], labels[:1]


def write_clip(path: Path, picture: np.ndarray, frames: int = 24) -> None:
    """A video, H.264: a window that moves over a photograph."""
    import av

    picture = _resized(picture, 180)
    with av.open(str(path), "w") as container:
        stream = container.add_stream("libx264", rate=24)
        stream.width = stream.height = 128
        stream.pix_fmt = "yuv420p"
        for k in range(frames):
            top, left = k, 4 * k
            window = np.ascontiguousarray(picture[top : top + 128, left : left + 128])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(window, format="rgb24")))
        container.mux(stream.encode(None))


def _resized(picture: np.ndarray, shorter: int) -> np.ndarray:
    scale = shorter / min(picture.shape[:2])
    return cv2.resize(picture, None, fx=scale, fy=scale, interpolation=cv2.INTER_AREA)


def _encoded(picture: np.ndarray) -> bytes:
    options = [cv2.IMWRITE_JPEG_QUALITY, 92]
    return cv2.imencode(".jpg", picture[..., ::-1], options)[1].tobytes()


def _write(path: Path, picture: np.ndarray) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(_encoded(picture))
