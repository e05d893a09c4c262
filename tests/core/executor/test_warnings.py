"""Warnings of operators at work: they point at the line of the program that made the node."""

from __future__ import annotations

import inspect
import warnings

import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.operators.support.decode import image_decoder
from tests.support.encoded_images import png

BOXES = np.array([[0.4, 0.4, 0.6, 0.6]], np.float32)


def _crops(pipe):
    boxes = fn.external_source(lambda: [BOXES] * 2)
    line = inspect.currentframe().f_lineno + 1
    found = fn.random_bbox_crop(boxes, thresholds=[0.95], scaling=[0.1, 0.1], total_num_attempts=2)
    pipe.set_outputs(*found)
    return line


def _images(pipe):
    data = fn.external_source(
        lambda: [np.frombuffer(png(np.zeros((20, 30, 3), np.uint8), 8, 2), np.uint8)] * 2
    )
    line = inspect.currentframe().f_lineno + 1
    pipe.set_outputs(fn.decoders.image(data))
    return line


@pytest.mark.parametrize(
    ("define", "text"), [(_crops, "Could not find a valid"), (_images, "an image of 20 x 30")]
)
@pytest.mark.parametrize("num_threads", [1, 3])
def test_the_users_line(define, text, num_threads, monkeypatch):
    monkeypatch.setattr(image_decoder, "SUSPICIOUS_PIXELS", 100)
    monkeypatch.setattr(image_decoder, "_warned", [0])
    with warnings.catch_warnings(record=True) as given:
        warnings.simplefilter("default")
        pipe = Pipeline(2, num_threads, None, workers="threads")
        with pipe:
            line = define(pipe)
        for _ in range(3):
            pipe.run()
        del pipe
    places = [(each.filename, each.lineno) for each in given if text in str(each.message)]
    assert places == [(__file__, line)]
