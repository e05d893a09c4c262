"""What is resized on the GPU for a consumer alone has the bits of one operator after the other."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace.operators.support.resize.resized_batch import ResizedBatch
from tests.support.gpu.alike import random_rows

SHAPES = {
    "HWC": [(40, 57, 3), (61, 33, 3), (25, 80, 3), (30, 30, 3)],
    "CHW": [(3, 40, 57), (3, 61, 33), (3, 25, 80), (3, 30, 30)],
    "FHWC": [(2, 20, 27, 3), (3, 31, 23, 3), (1, 25, 40, 3), (4, 30, 30, 3)],
    "DHWC": [(5, 20, 27, 3), (7, 31, 23, 3), (3, 25, 40, 3), (4, 30, 30, 3)],
}
STATISTICS = {"mean": [120.0, 110.5, 100.0], "std": [50.0, 61.0, 70.0]}


def outputs(rows, layout, graph, *, fuse):
    pipe = Pipeline(
        batch_size=len(rows), num_threads=1, device_id=0, seed=3, prefetch_queue_depth=1, fuse=fuse
    )
    with pipe:
        pipe.set_outputs(graph(fn.external_source(source=lambda: rows, layout=layout).gpu()))
    (batch,) = pipe.run()
    host = batch.as_cpu()
    return [np.array(host.at(i)) for i in range(len(rows))]


def assert_fusion_changes_nothing(graph, layout="HWC", dtype=np.uint8):
    rows = random_rows(*SHAPES[layout], dtype=dtype)
    fused, plain = (outputs(rows, layout, graph, fuse=fuse) for fuse in (True, False))
    for one, other in zip(fused, plain, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.fixture
def no_whole_images(monkeypatch):
    """Fails where a resized batch is written to memory of its own."""

    def refuse(self, queue):
        raise AssertionError("not fused")

    monkeypatch.setattr(ResizedBatch, "materialise", refuse)


NORMALIZED = {
    "floats": {},
    "halves": {"dtype": types.FLOAT16, "output_layout": "HWC"},
    "bytes": {"dtype": types.UINT8, "scale": 30.0, "shift": 100.0},
    "padded": {"pad_output": True, "dtype": types.INT8, "output_layout": "HWC", "scale": 30.0},
    "padded planes": {"pad_output": True, "dtype": types.FLOAT16},
    "rows of channels": {"output_layout": "HCW"},
}


@pytest.mark.sweep
@pytest.mark.parametrize("resize", [{}, {"interp_type": types.INTERP_NN}, {"antialias": False}])
@pytest.mark.parametrize("arguments", NORMALIZED.values(), ids=NORMALIZED.keys())
def test_resized_and_normalized(arguments, resize):
    def graph(x):
        x = fn.resize(x, resize_shorter=25, **resize)
        mirror = fn.random.coin_flip()
        return fn.crop_mirror_normalize(x, crop=(22, 20), mirror=mirror, **STATISTICS, **arguments)

    assert_fusion_changes_nothing(graph)


@pytest.mark.parametrize("dtype", ["int16", "uint16", "float32"])
def test_types(dtype):
    def graph(x):
        x = fn.random_resized_crop(x, size=(20, 24))
        return fn.crop_mirror_normalize(x, mirror=1, **STATISTICS)

    assert_fusion_changes_nothing(graph, dtype=dtype)


def test_in_one_launch(no_whole_images):
    def graph(x):
        x = fn.random_resized_crop(x, size=(20, 24))
        x = fn.crop(x, crop=(15, 17), crop_pos_x=0.2)
        x = fn.flip(x, horizontal=fn.random.coin_flip(), vertical=1)
        return fn.crop_mirror_normalize(x, crop=(11, 12), mirror=fn.random.coin_flip(), std=2.0)

    outputs(random_rows(*SHAPES["HWC"]), "HWC", graph, fuse=True)


@pytest.mark.parametrize("layout", ["HWC", "CHW", "FHWC", "DHWC"])
def test_chains(layout):
    size = (4, 20, 24) if "D" in layout else (20, 24)
    crop = (3, 15, 17) if "D" in layout else (15, 17)

    def graph(x):
        x = fn.resize(x, size=size)
        x = fn.crop(x, crop=crop, crop_pos_x=0.2, crop_pos_y=0.9)
        x = fn.flip(x, horizontal=fn.random.coin_flip(), vertical=fn.random.coin_flip())
        return fn.crop(x, crop=(11, 12))

    assert_fusion_changes_nothing(graph, layout)
    if layout != "CHW":
        inner = "C" + layout.replace("C", "")

        def normalized(x):
            return fn.crop_mirror_normalize(graph(x), mirror=1, output_layout=inner, **STATISTICS)

        assert_fusion_changes_nothing(normalized, layout)


def test_a_part_of_the_channels():
    def graph(x):
        x = fn.resize(x, size=(20, 24))
        return fn.slice(x, start=(3, 5, 1), shape=(10, 11, 2), axes=(0, 1, 2))

    assert_fusion_changes_nothing(graph)


def test_windows_that_leave_the_resized_image():
    def graph(x):
        x = fn.resize(x, resize_longer=25)
        return fn.crop_mirror_normalize(x, crop=(30, 30), out_of_bounds_policy="pad", mirror=1)

    assert_fusion_changes_nothing(graph)


@pytest.mark.parametrize("layout", ["HWC", "CHW", "FHWC", "DHWC"])
def test_views_are_resized(layout):
    """Crops and mirror images are resized from where they are, or, turned, from a copy."""

    def graph(x):
        x = fn.crop(x, crop=(19, 17), crop_pos_x=0.7)
        x = fn.flip(x, horizontal=fn.random.coin_flip(), vertical=1)
        return fn.resize(x, size=(4, 9, 10) if "D" in layout else (9, 10))

    assert_fusion_changes_nothing(graph, layout)


def test_planes_are_normalized_from_views():
    def graph(x):
        x = fn.transpose(fn.crop(x, crop=(19, 17)), perm=[2, 0, 1])
        return fn.crop_mirror_normalize(x, crop=(9, 11), mirror=1, **STATISTICS)

    assert_fusion_changes_nothing(graph)
