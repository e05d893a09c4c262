"""Sequences: operators that know frames are run on each frame, with per-frame arguments."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace.operators import Arg, FloatArg, Input, SampleOperator, Spec, operator
from headrace.types import DALIDataType


@operator(
    "testing.scale_frames",
    inputs=Input(layouts=("HWC", "CHW")),
    args=[Arg("by", FloatArg, 2.0, "Factor.", per_sample=True, per_frame=True)],
    frames=True,
    hidden=True,
)
class ScaleFrames(SampleOperator):
    """Multiply; checks that it sees frames only."""

    def infer(self, data: Spec) -> Spec:
        """A frame as float32."""
        assert data.layout in ("HWC", "CHW")
        assert data.ndim == 3
        return data._replace(dtype=DALIDataType.FLOAT)

    def cpu(self, c, data):
        """One frame."""
        out = c.empty(data.shape, np.float32)
        np.multiply(data, c.args.by, out=out, casting="unsafe")
        return out


@operator("testing.crop_by_index", inputs=Input(layouts=("HWC",)), frames=True, hidden=True)
class Growing(SampleOperator):
    """Makes a frame's height its first value: frames of one sequence come out different."""

    def cpu(self, c, data):
        """One frame."""
        return data[: int(data[0, 0, 0])]


def run(graph, batch, layout):
    pipe = Pipeline(batch_size=len(batch), num_threads=2, device_id=None)
    with pipe:
        pipe.set_outputs(graph(fn.external_source(source=lambda: batch, layout=layout)))
    return pipe.run()[0]


SEQUENCES = [np.arange(f * 12, dtype=np.uint8).reshape(f, 2, 2, 3) for f in (4, 1, 3)]


def test_each_frame_is_worked_on():
    out = run(fn.testing.scale_frames, SEQUENCES, "FHWC")
    assert (out.layout(), out.dtype) == ("FHWC", types.FLOAT)
    for got, sequence in zip(out, SEQUENCES, strict=True):
        np.testing.assert_array_equal(got, sequence * 2.0)


@pytest.mark.parametrize("layout", ["FCHW", "CFHW"])
def test_frame_axis_anywhere(layout):
    batch = [np.random.default_rng(0).random((3, 4, 2, 5), np.float32)]
    out = run(fn.testing.scale_frames, batch, layout)
    assert out.layout() == layout
    np.testing.assert_array_equal(out.at(0), batch[0] * 2)


def test_frames_without_a_layout():
    out = run(fn.testing.scale_frames, SEQUENCES, None)
    assert out.layout() == "FHWC"


def test_plain_images_pass_too():
    out = run(fn.testing.scale_frames, [s[0] for s in SEQUENCES], "HWC")
    np.testing.assert_array_equal(out.at(0), SEQUENCES[0][0] * 2.0)


def test_arguments_for_each_frame():
    factors = [np.arange(len(s), dtype=np.float32) + 1 for s in SEQUENCES]

    def graph(x):
        by = fn.external_source(source=lambda: factors)
        return fn.testing.scale_frames(x, by=fn.per_frame(by))

    out = run(graph, SEQUENCES, "FHWC")
    for got, sequence, factor in zip(out, SEQUENCES, factors, strict=True):
        np.testing.assert_array_equal(got, sequence * factor[:, None, None, None])


def test_wrong_number_of_frame_arguments():
    def graph(x):
        by = fn.external_source(source=lambda: np.ones((3, 2), np.float32))
        return fn.testing.scale_frames(x, by=fn.per_frame(by))

    with pytest.raises(ValueError, match="values for 2 frames, but the sequence has 4"):
        run(graph, SEQUENCES, "FHWC")


def test_frames_must_come_out_equal():
    sequence = np.ones((2, 5, 2, 3), np.uint8)
    sequence[1, 0, 0, 0] = 3
    with pytest.raises(ValueError, match="different shapes"):
        run(fn.testing.crop_by_index, [sequence], "FHWC")


def test_sequence_without_frames():
    with pytest.raises(ValueError, match="no frames"):
        run(fn.testing.scale_frames, [np.zeros((0, 2, 2, 3), np.uint8)], "FHWC")
