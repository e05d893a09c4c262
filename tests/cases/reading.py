"""Cases of readers; `files` writes what they read."""

from __future__ import annotations

from importlib.util import find_spec

from tests.cases.case import Case
from tests.cases.data import video_files

_SHUFFLED = {"random_shuffle": True, "initial_fill": 3}


def _reader(name: str, **args: object) -> Case:
    return Case(f"readers.{name}", [], args, dali=False)


_WEB = {"paths": ["{root}/web.tar"], "ext": ["jpg", "cls"]}
_RECORDS = {"path": "{root}/x.tfrecord", "index_path": "{root}/x.tfrecord.idx"}

READING = [
    _reader("file", file_root="{root}/images"),
    _reader("file", file_root="{root}/images", **_SHUFFLED),
    _reader("file", file_root="{root}/images", num_shards=2, shard_id=1, pad_last_batch=True),
    _reader("file", file_root="{root}/images", shuffle_after_epoch=True),
    _reader("numpy", file_root="{root}/arrays"),
    _reader("numpy", file_root="{root}/arrays", roi_start=[1, 0], roi_shape=[2, 2]),
    _reader("numpy", file_root="{root}/arrays", **_SHUFFLED),
    _reader("caffe", path="{root}/caffe"),
    _reader("caffe", path="{root}/caffe", **_SHUFFLED),
    _reader("caffe2", path="{root}/caffe2"),
    _reader("coco", file_root="{root}/images/a", annotations_file="{root}/coco.json", ratio=True),
    _reader(
        "coco",
        file_root="{root}/images/a",
        annotations_file="{root}/coco.json",
        polygon_masks=True,
        image_ids=True,
        **_SHUFFLED,
    ),
    _reader("mxnet", path="{root}/x.rec", index_path="{root}/x.idx"),
    _reader("mxnet", path="{root}/x.rec", index_path="{root}/x.idx", **_SHUFFLED),
    _reader("nemo_asr", manifest_filepaths="{root}/speech.json", read_text=True),
    _reader("nemo_asr", manifest_filepaths="{root}/speech.json", downmix=True, **_SHUFFLED),
    _reader("tfrecord", **_RECORDS, features={"image": "bytes", "label": "int64"}),
    _reader("tfrecord", **_RECORDS, features={"label": "int64"}, **_SHUFFLED),
    _reader("webdataset", **_WEB),
    _reader("webdataset", **_WEB, **_SHUFFLED),
    Case("experimental.readers.fits", [], {"file_root": "{root}/fits"}, dali=False),
]

_VIDEO = {"filenames": ["{root}/a.webm", "{root}/b.webm"], "sequence_length": 3}
VIDEO = [
    _reader("video", **_VIDEO),
    _reader("video", **_VIDEO, **_SHUFFLED),
    _reader("video", **_VIDEO, dtype="FLOAT", normalized=True, image_type="YCbCr"),
    _reader("video_resize", **_VIDEO, size=[20, 30], pad_sequences=True),
    Case("experimental.readers.video", [], {**_VIDEO, "pad_mode": "edge"}, dali=False),
    Case("decoders.video", [(video_files(), "")], {"stride": 2}, dali=False),
    Case("decoders.video", [(video_files(), "")], {}, {"start_frame": [0, 1, 2]}, dali=False),
]
"""Cases that need the library PyAV."""
HAS_VIDEO = find_spec("av") is not None
if HAS_VIDEO:
    READING += VIDEO
