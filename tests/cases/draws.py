"""Cases of operators that draw random numbers: each with a seed of its own, which dynamic mode
gives to a generator.
"""

from __future__ import annotations

import numpy as np

from tests.cases.case import Case
from tests.cases.data import boxes, encoded, floats, images, labels, masks

_HWC, _REAL, _FILES = (images(), "HWC"), (floats(), "HWC"), (encoded(), "")
_FRAMES = [np.stack([image, image[::-1]]) for image in images()], "FHWC"
_BOXES, _LABELS, _MASKS = (boxes(), ""), (labels(), ""), (masks(), "")
_SHAPES = [np.int64(image.shape[:2]) for image in images()], ""
_WINDOW = {"allow_no_crop": False, "scaling": [0.3, 0.9], "aspect_ratio": [0.5, 2.0]}

_ALIKE = [np.ascontiguousarray(image[:30, :20]) for image in images()], "HWC"
_CLASS = [np.int32([k]) for k in range(3)], ""

DRAWS = [
    Case("cutmix", [_ALIKE, _CLASS], {"num_classes": 4}, dali=False),
    Case("mixup", [_ALIKE, _CLASS], {"num_classes": 4, "alpha": 0.4}, dali=False),
    Case("mosaic", [_HWC, _CLASS], {"num_classes": 4, "output_size": [50, 60]}, dali=False),
    Case("batch_permutation", []),
    Case("batch_permutation", [], {"no_fixed_points": True}),
    Case("batch_permutation", [], {"allow_repetitions": True}),
    Case("decoders.image_random_crop", [_FILES]),
    Case("decoders.image_random_crop", [_FILES], {"random_area": [0.3, 0.9], "num_attempts": 2}),
    Case("jitter", [_HWC], {"nDegree": 5}, dali=False),
    Case("jitter", [_REAL], {}, {"mask": [1, 0, 1]}, dali=False),
    Case("noise.gaussian", [_HWC], {"mean": 3.0, "stddev": 20.0}),
    Case("noise.gaussian", [_REAL], {}, {"stddev": [0.5, 1.0, 9.0]}),
    Case("noise.salt_and_pepper", [_HWC], {"prob": 0.3}),
    Case("noise.salt_and_pepper", [_HWC], {"per_channel": True, "salt_val": 9.0, "prob": 0.5}),
    Case("noise.shot", [_HWC], {"factor": 10.0}),
    Case("noise.shot", [_REAL], {}, {"factor": [0.0, 5.0, 90.0]}),
    Case("random.beta", [], {"alpha": 0.5, "beta": 2.0, "shape": [4, 3]}),
    Case("random.choice", [([np.int32(5)] * 3, "")], {"shape": [6]}),
    Case("random.choice", [([np.float32([1.5, 2.5, 4.0])] * 3, "")], {"p": [0.2, 0.3, 0.5]}),
    Case("random.coin_flip", [], {"probability": 0.3, "shape": [40]}),
    Case("random.coin_flip", [], {"dtype": "BOOL"}, {"probability": [0.0, 0.5, 1.0]}),
    Case("random.normal", [], {"shape": [30]}),
    Case("random.normal", [], {"shape": [5], "dtype": "INT16"}, {"mean": [0.0, 100.0, -50.0]}),
    Case("random.normal", [_HWC], {"stddev": 3.0}),
    Case("random.uniform", []),
    Case("random.uniform", [], {"range": [-2.0, 5.0], "shape": [3, 40]}),
    Case("random.uniform", [], {"range": [0, 100], "dtype": "INT32", "shape": [9]}),
    Case("random.uniform", [], {"values": [1.0, 3.0, 9.0], "shape": [9]}),
    Case("random.uniform", [], {}, {"range": [[0.0, 1.0], [5.0, 6.0], [-9.0, 9.0]]}),
    Case("random_bbox_crop", [_BOXES], _WINDOW),
    Case(
        "random_bbox_crop",
        [_BOXES, _LABELS],
        {"allow_no_crop": True, "thresholds": [0.1, 0.5], "output_bbox_indices": True},
    ),
    Case("random_crop_generator", [_SHAPES]),
    Case("random_crop_generator", [_SHAPES], {"random_area": [0.2, 0.4], "num_attempts": 3}),
    Case("random_resized_crop", [_HWC], {"size": [16, 20]}),
    Case(
        "random_resized_crop",
        [_REAL],
        {"size": [16, 20], "interp_type": "INTERP_CUBIC", "random_area": [0.1, 0.3]},
    ),
    Case("random_resized_crop", [_FRAMES], {"size": [16, 20], "antialias": False}),
    Case(
        "roi_random_crop",
        [],
        {"crop_shape": [5, 6], "in_shape": [40, 50], "roi_shape": [9, 9]},
        {"roi_start": [[1, 2], [10, 20], [25, 30]]},
    ),
    Case(
        "roi_random_crop",
        [_HWC],
        {"crop_shape": [5, 6, 3], "roi_start": [1, 2, 0]} | {"roi_end": [20, 15, 3]},
    ),
    Case("segmentation.random_mask_pixel", [_MASKS]),
    Case("segmentation.random_mask_pixel", [_MASKS], {"value": 2, "foreground": 1}),
    Case("segmentation.random_object_bbox", [_MASKS]),
    Case(
        "segmentation.random_object_bbox",
        [_MASKS],
        {"classes": [1, 2], "class_weights": [5.0, 1.0], "format": "box", "output_class": True},
    ),
]
