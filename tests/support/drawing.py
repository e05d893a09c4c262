"""A call of each operator that draws random numbers: the registry says which do."""

from __future__ import annotations

import operator
from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np

from headrace.operators.support.composite import Composite
from headrace.operators.support.registry import all_schemas, find
from headrace.operators.support.signature import class_name
from tests.support.images import encoded

BATCH = 3


class Fed(NamedTuple):
    """One batch of an input."""

    rows: list[np.ndarray]
    layout: str = ""


_RANDOM = np.random.default_rng(4)
_SHAPES = Fed([np.zeros(5, np.float32)] * BATCH)
_IMAGES = Fed([_RANDOM.integers(0, 255, (70, 60 + k, 3), np.uint8) for k in range(BATCH)], "HWC")
_FILES = Fed([encoded(60 + k, 80, seed=k) for k in range(BATCH)])
_CORNERS = [np.sort(_RANDOM.random((4, 2, 2), np.float32), axis=1) for _ in range(BATCH)]
_BOXES = Fed([corners.reshape(-1, 4) for corners in _CORNERS])
_LABELS = Fed([np.arange(4, dtype=np.int32) for _ in range(BATCH)])
_MASKS = Fed([np.arange(400, dtype=np.int32).reshape(20, 20) % 7 for _ in range(BATCH)])
_SIZES = Fed([np.array([90, 80], np.int64) for _ in range(BATCH)])
_COUNTS = Fed([np.arange(3, 9, dtype=np.int32) for _ in range(BATCH)])

_CALLS: dict[str, tuple[Sequence[Fed], dict[str, Any]]] = {
    "random.choice": ([_COUNTS], {"shape": (6,)}),
    "random_bbox_crop": (
        [_BOXES],
        {"bbox_layout": "xyXY", "thresholds": [0.0], "scaling": [0.3, 0.8], "allow_no_crop": False},
    ),
    "random_crop_generator": ([_SIZES], {}),
    "random_resized_crop": ([_IMAGES], {"size": (9, 9), "antialias": False}),
    "roi_random_crop": (
        [_IMAGES],
        {"crop_shape": [9, 5, 3], "roi_start": [2, 2, 0], "roi_end": [60, 7, 3]},
    ),
    "segmentation.random_mask_pixel": ([_MASKS], {"foreground": 1}),
    "segmentation.random_object_bbox": ([_MASKS], {"ignore_class": True}),
    "ssd_random_crop": ([_IMAGES, _BOXES, _LABELS], {}),
    **{f"noise.{name}": ([_IMAGES], {}) for name in ("salt_and_pepper", "shot")},
    "jitter": ([_IMAGES], {}),
    "noise.gaussian": ([_IMAGES], {"stddev": 9.0}),
}


def drawing(device: str = "cpu") -> list[str]:
    """The operators that draw and have inputs, of which there may be several sets."""
    ours = [s for s in all_schemas() if s.cls.__module__.startswith("headrace.operators")]
    # Those made of others take one set.
    found = [s for s in ours if s.random and s.inputs and not issubclass(s.cls, Composite)]
    found = [s for s in found if not s.hidden]
    return [s.name for s in found if device == "cpu" or s.cls.has_gpu()]


def draw_twice(lib: Any, name: str, *, device: str = "cpu", classes: bool = False) -> list[Any]:
    """The nodes of a call with two input sets of the same data: a list for each output."""
    feeds, arguments = _CALLS.get(name, ([_FILES if "decode" in name else _SHAPES], {}))
    on_gpu = device == "gpu"
    sets = [[_source(lib, feed, on_gpu) for _ in range(2)] for feed in feeds]
    if on_gpu and "decode" in name:
        arguments = {**arguments, "device": "mixed"}
    if classes:
        schema = find(name)
        module = operator.attrgetter(schema.module)(lib.ops) if schema.module else lib.ops
        found = getattr(module, class_name(schema))(**arguments)(*sets)
    else:
        found = operator.attrgetter(name)(lib.fn)(*sets, **arguments)
    return list(found) if isinstance(found[0], list) else [found]


def _source(lib: Any, feed: Fed, on_gpu: bool) -> Any:
    data = lib.fn.external_source(lambda: feed.rows, layout=feed.layout or None)
    return data.gpu() if on_gpu and feed is not _FILES else data
