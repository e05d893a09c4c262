"""Matrices that videos name: `color_space="tag"`."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import fn, pipeline_def
from headrace.errors import ArgumentChoiceError
from tests.support.videos import picture, write_video

FRAMES, SIZE = 4, (48, 64)
BT709, BT2020, SMPTE240M, SMPTE170M = 1, 9, 7, 6


def video(colorspace):
    options = {"crf": "0", "preset": "ultrafast"}
    return np.frombuffer(
        write_video(
            frames=FRAMES, size=SIZE, pix_fmt="yuv444p", colorspace=colorspace, options=options
        ),
        np.uint8,
    )


def error(frames):
    expected = np.stack([picture(k, *SIZE) for k in range(FRAMES)])
    return np.abs(np.array(frames).astype(int) - expected).max()


def decoded(data, tmp_path, way, **options):
    path = tmp_path / "one.mp4"
    path.write_bytes(data.tobytes())

    @pipeline_def(batch_size=1, num_threads=1, device_id=None, prefetch_queue_depth=1)
    def define():
        if way == "decoder":
            return fn.decoders.video(fn.external_source(lambda: [data]), **options)
        if way == "reader":
            given = {"filenames": [str(path)], "sequence_length": FRAMES}
            return fn.experimental.readers.video(**given, **options)
        return fn.experimental.inputs.video(name="fed", sequence_length=FRAMES, **options)

    pipe = define()
    if way == "input":
        pipe.feed_input("fed", [data])
    return pipe.run()[0][0]


@pytest.mark.parametrize("way", ["decoder", "reader", "input"])
@pytest.mark.parametrize("colorspace", [BT709, BT2020, SMPTE240M])
def test_the_matrix_that_a_video_names(colorspace, way, tmp_path):
    data = video(colorspace)
    assert error(decoded(data, tmp_path, way, color_space="tag")) <= 3
    assert error(decoded(data, tmp_path, way)) > 12  # as in DALI


@pytest.mark.parametrize("colorspace", [SMPTE170M, None])
def test_others_are_of_bt601(colorspace, tmp_path):
    for options in ({}, {"color_space": "tag"}):
        assert error(decoded(video(colorspace), tmp_path, "decoder", **options)) <= 3


def test_there_is_no_third(tmp_path):
    with pytest.raises(ArgumentChoiceError, match="color_space"):
        decoded(video(None), tmp_path, "decoder", color_space="bt709")
