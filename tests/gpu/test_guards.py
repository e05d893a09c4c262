"""Branches on the GPU, beside everything computed for all samples on the CPU and selected."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from penstock import fn, pipeline_def
from penstock.graph.branches import guarded, merge
from tests.support.branches import check_equal, run


def _jpeg(value):
    return cv2.imencode(".jpg", np.full((16, 16, 3), value, np.uint8))[1]


@given(st.data())
@settings(deadline=None, suppress_health_check=list(HealthCheck))
def test_branches_give_what_is_selected(data):
    choices: list = []
    wanted = run(data, choices, branches=False, threads=1, fuse=False)
    for fuse in (True, False):
        check_equal(run(data, choices, branches=True, threads=2, fuse=fuse, device="gpu"), wanted)


def test_a_batch_operator_sees_its_branch_and_outputs_hold_theirs():
    @pipeline_def(batch_size=4, num_threads=2, device_id=0)
    def pipe():
        images, label = fn.external_source(
            lambda: (
                [np.full((2 + k, 3, 3), k, np.uint8) for k in range(4)],
                np.arange(4, dtype=np.int32),
            ),
            num_outputs=2,
            layout=["HWC", ""],
        )
        odd = label % 2
        with guarded(odd):
            padded = fn.pad(images.gpu())
        none = label > 9
        with guarded(none):
            never = fn.flip(images.gpu()).cpu()
        return merge(odd, padded, images.gpu()), padded, never, merge(none, never, images)

    made = pipe()
    for _ in range(2):
        merged, padded, never, same = made.run()
    shapes = [np.array(s).shape for s in merged.as_cpu()]
    assert shapes == [(2, 3, 3), (5, 3, 3), (4, 3, 3), (5, 3, 3)]
    assert [np.array(s)[0, 0, 0] for s in merged.as_cpu()] == [0, 1, 2, 3]
    assert [np.array(s)[0, 0, 0] for s in padded.as_cpu()] == [1, 3]
    assert len(never) == 0
    assert [np.array(s).shape[0] for s in same] == [2, 3, 4, 5]


@pytest.mark.parametrize("policy", ["replace", "raise"])
def test_a_sample_that_a_decoder_refuses_in_a_branch(policy):
    files = [_jpeg(40 * k) for k in range(4)]
    files[3] = np.frombuffer(b"no image", np.uint8)

    @pipeline_def(batch_size=4, num_threads=2, device_id=0, on_bad_sample=policy)
    def pipe():
        data, label = fn.external_source(
            lambda: (files, np.arange(4, dtype=np.int32)), num_outputs=2
        )
        odd = label % 2
        with guarded(odd):
            image = fn.decoders.image(data, device="mixed")
        with guarded(odd, holds=False):
            other = fn.flip(fn.decoders.image(data, device="mixed"))
        return merge(odd, image, other), label

    made = pipe()
    if policy == "raise":
        with pytest.raises(Exception, match="sample 3"):
            made.run()
        return
    images, label = made.run()
    assert np.asarray(label.as_array()).tolist() == [0, 1, 2, 2]
    assert [int(np.array(s).mean().round()) for s in images.as_cpu()] == [0, 40, 80, 80]
