"""Branches on the GPU, beside everything computed for all samples on the CPU and selected."""

from __future__ import annotations

import cv2
import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from headrace import fn, pipeline_def
from headrace.graph.branches import guarded, merge
from headrace.operators.transfer.copy_between_devices import CopyToGpu
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


@pytest.mark.parametrize(
    ("where", "uploaded"),
    [("one branch", [2]), ("both branches", [4]), ("an inner branch", [1]), ("behind", [4])],
)
def test_what_only_a_branch_reads_is_uploaded_for_its_samples(monkeypatch, where, uploaded):
    sizes = []
    upload = CopyToGpu.gpu

    def noted(self, c, batch):
        sizes.append(c.size)
        return upload(self, c, batch)

    monkeypatch.setattr(CopyToGpu, "gpu", noted)
    given = [np.full((2 + k, 3, 3), k, np.uint8) for k in range(4)]

    @pipeline_def(batch_size=4, num_threads=2, device_id=0)
    def pipe():
        images, label = fn.external_source(
            lambda: (given, np.arange(4, dtype=np.int32)), num_outputs=2, layout=["HWC", ""]
        )
        odd = label % 2
        if where == "behind":  # the upload of the images does not wait for what the GPU made
            odd = (odd.gpu() + 0).cpu()
        with guarded(odd):
            if where == "an inner branch":
                with guarded(label > 2):
                    return fn.flip(images.gpu(), vertical=1), label
            turned = fn.flip(images.gpu(), vertical=1)
        if where == "both branches":
            with guarded(odd, holds=False):
                cropped = fn.crop(images.gpu(), crop=(2, 3))
            return merge(odd, turned, cropped), label
        return turned, label

    made = pipe(prefetch_queue_depth=1)
    found, _ = made.run()
    wanted = {"an inner branch": [3], "both branches": [0, 1, 2, 3]}.get(where, [1, 3])
    assert [np.array(s)[0, 0, 0] for s in found.as_cpu()] == wanted
    assert sizes[: len(uploaded)] == uploaded
