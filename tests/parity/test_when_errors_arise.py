"""Constants that are wrong whatever the data are told when the pipeline is built, as in DALI."""

from __future__ import annotations

import numpy as np
import pytest

from headrace.errors import HeadraceError
from tests.parity.support import LIBRARIES

IMAGE = np.zeros((8, 9, 3), np.uint8)
SIGNAL = np.ones(400, np.float32)
SPECTRUM = np.ones((20, 5), np.float32)
BOXES, LABELS = np.float32([[0.1, 0.1, 0.5, 0.5]]), np.int32([1])

CASES = [
    ("to_decibels", [SPECTRUM], {"reference": 0.0}),
    ("spectrogram", [SIGNAL], {"window_step": 0}),
    ("spectrogram", [SIGNAL], {"window_length": 0}),
    ("spectrogram", [SIGNAL], {"window_length": 16, "window_fn": [1.0] * 8}),
    ("mel_filter_bank", [SPECTRUM], {"nfilter": 0}),
    ("mel_filter_bank", [SPECTRUM], {"sample_rate": 0.0}),
    ("mel_filter_bank", [SPECTRUM], {"freq_low": 9000.0, "freq_high": 100.0}),
    ("mel_filter_bank", [SPECTRUM], {"freq_high": 1e6, "sample_rate": 16000.0}),
    ("preemphasis_filter", [SIGNAL], {"border": "x"}),
    ("audio_resample", [SIGNAL], {}),
    ("audio_resample", [SIGNAL], {"scale": 2.0, "quality": 200.0}),
    ("audio_resample", [SIGNAL], {"scale": 2.0, "out_length": 4}),
    ("transpose", [IMAGE], {"perm": [0, 0, 1]}),
    ("lookup_table", [IMAGE], {"keys": [1], "values": [1.0, 2.0]}),
    ("lookup_table", [IMAGE], {"keys": [-1], "values": [1.0]}),
    ("box_encoder", [BOXES, LABELS], {"anchors": [0.1, 0.2, 0.3]}),
    ("box_encoder", [BOXES, LABELS], {"anchors": [0.1, 0.2, 0.3, 0.4], "criteria": 2.0}),
    ("random_resized_crop", [IMAGE], {"size": [4, 4], "random_area": [0.9, 0.1]}),
    ("random_resized_crop", [IMAGE], {"size": [4, 4, 4]}),
    ("decoders.image_random_crop", [IMAGE[0, 0]], {"random_area": [2.0, 1.0]}),
]
NAMES = [f"{name}-{k}" for k, (name, _, _) in enumerate(CASES)]


@pytest.mark.parametrize("library", LIBRARIES)
@pytest.mark.parametrize(("name", "data", "arguments"), CASES, ids=NAMES)
def test_at_build(library, name, data, arguments):
    lib = LIBRARIES[library]
    pipe = lib.Pipeline(2, 1, None)
    with pipe:
        sources = [lib.fn.external_source(lambda d=d: [d] * 2, batch=True) for d in data]
        function = lib.fn
        for part in name.split("."):
            function = getattr(function, part)
        found = function(*sources, **arguments)
        pipe.set_outputs(*(found if isinstance(found, (list, tuple)) else [found]))
    with pytest.raises(HeadraceError if library == "headrace" else RuntimeError) as caught:
        pipe.build()
    if library == "headrace":
        assert f"fn.{name}" in str(caught.value)
        assert "test_when_errors_arise.py" in str(caught.value)
