"""What is warped on the GPU for a consumer alone has the bits of one operator after the other."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace._lazy_module import lazy_module
from headrace.operators.support.warp.warped_batch import WarpedBatch
from headrace.tensors.gpu.queue import Queue
from tests.support.gpu.alike import random_rows
from tests.support.gpu.runtime import EmulatedRuntime

SHAPES = {
    "HWC": [(40, 57, 3), (61, 33, 3), (25, 300, 3), (30, 30, 3)],
    "DHWC": [(5, 20, 27, 2), (7, 31, 23, 2), (3, 25, 40, 2), (4, 30, 30, 2)],
}
STATISTICS = {"mean": [120.0, 110.5, 100.0], "std": [50.0, 61.0, 70.0]}
MATRICES = [
    np.array(m, np.float32)
    for m in (
        [[0.9, 0.3, -3.2], [-0.2, 1.1, 4.5]],
        [[0.2, -1.3, 30.2], [1.2, 0.1, 1.5]],
        [[2.9, 0, 3.2], [0, 3.1, 4.5]],
        [[1, 0, 0], [0, 1, 0]],
    )
]


def outputs(rows, layout, graph, *, fuse):
    pipe = Pipeline(
        batch_size=len(rows), num_threads=1, device_id=0, seed=3, prefetch_queue_depth=1, fuse=fuse
    )
    with pipe:
        pipe.set_outputs(graph(fn.external_source(source=lambda: rows, layout=layout).gpu()))
    (batch,) = pipe.run()
    host = batch.as_cpu()
    return [np.array(host.at(i)) for i in range(len(rows))]


def assert_fusion_changes_nothing(graph, layout="HWC", dtype=np.uint8, shapes=None):
    rows = random_rows(*(shapes or SHAPES[layout]), dtype=dtype)
    fused, plain = (outputs(rows, layout, graph, fuse=fuse) for fuse in (True, False))
    for one, other in zip(fused, plain, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.fixture
def one_kernel(monkeypatch):
    """Fails where a whole warp is written to memory, or anything is done behind it."""

    def refuse(*_, **__):
        raise AssertionError("not fused")

    for module, function in (
        ("warp", "warp"),
        ("pointwise", "compute"),
        ("normalize_pixels", "normalize_pixels"),
    ):
        monkeypatch.setattr(lazy_module(f"headrace.kernels.gpu.{module}"), function, refuse)
    monkeypatch.setattr(Queue, "copy_strided", refuse)


def fused(graph, layout="HWC", dtype=np.uint8, shapes=None):
    """Check that a graph is one kernel, where it may be."""
    outputs(random_rows(*(shapes or SHAPES[layout]), dtype=dtype), layout, graph, fuse=True)


def turned(x, **given):
    return fn.rotate(x, angle=numbers(10, -70, 33, 90), **given)


def numbers(*values, dtype=np.float32):
    rows = [np.asarray(v, dtype) for v in values]
    return fn.external_source(source=lambda: rows, batch=True)


def warped(x, **given):
    return fn.warp_affine(x, numbers(*MATRICES), **given)


WARPS = {
    "rotate": turned,
    "rotate to a size": lambda x: turned(x, size=(31, 300), fill_value=7),
    "warp_affine": lambda x: warped(x, fill_value=200.4),
    "nearest": lambda x: warped(x, interp_type=types.INTERP_NN),
    "to a size": lambda x: warped(x, size=(40, 280)),
    "one matrix": lambda x: fn.warp_affine(x, matrix=(1.1, 0.2, -3, 0.1, 0.8, 2)),
    "matrices on the GPU": lambda x: fn.warp_affine(
        x, numbers(*MATRICES).gpu(), inverse_map=False, fill_value=0
    ),
    "floats": lambda x: turned(x, dtype=types.FLOAT),
}
NORMALIZED = {
    "floats": {},
    "halves": {"dtype": types.FLOAT16, "output_layout": "HWC"},
    "bytes": {"dtype": types.UINT8, "scale": 30.0, "shift": 100.0},
    "padded": {"pad_output": True, "dtype": types.INT8, "output_layout": "HWC", "scale": 30.0},
    "padded planes": {"pad_output": True, "dtype": types.FLOAT16},
    "rows of channels": {"output_layout": "HCW"},
}


@pytest.mark.sweep
@pytest.mark.parametrize("warp", WARPS.values(), ids=WARPS)
@pytest.mark.parametrize("given", NORMALIZED.values(), ids=NORMALIZED)
def test_normalized(warp, given):
    def graph(x):
        return fn.crop_mirror_normalize(
            warp(x),
            crop=(21, 25),
            crop_pos_x=numbers(0, 0.4, 0.7, 1),
            crop_pos_y=numbers(1, 0.3, 0, 0.6),
            mirror=numbers(1, 0, 1, 0, dtype=np.int32),
            **STATISTICS,
            **given,
        )

    assert_fusion_changes_nothing(graph)


@pytest.mark.usefixtures("one_kernel")
@pytest.mark.parametrize("warp", WARPS.values(), ids=WARPS)
def test_normalized_by_one_kernel(warp):
    fused(
        lambda x: fn.crop_mirror_normalize(
            warp(x), crop=(21, 25), mirror=numbers(1, 0, 1, 0, dtype=np.int32), **STATISTICS
        )
    )


def test_whole_images_are_normalized():
    def graph(x):
        return fn.crop_mirror_normalize(warped(x, size=(33, 270)), **STATISTICS)

    assert_fusion_changes_nothing(graph)


def cropped(x):
    x = fn.crop(x, crop=(20, 24), crop_pos_x=numbers(0, 0.5, 1, 0.3))
    x = fn.flip(x, horizontal=numbers(1, 0, 1, 0, dtype=np.int32), vertical=1)
    return fn.slice(x, start=[3, 5], end=[18, 20], axes=[0, 1])


CHAINS = {
    "windows": cropped,
    "cast": lambda x: fn.cast(x, dtype=types.FLOAT16),
    "brightness": lambda x: fn.brightness_contrast(
        x, brightness=numbers(1.1, 0.5, 2, 0.9), contrast=0.7
    ),
    "arithmetic": lambda x: (x * 2 + 3) / numbers(1, 2, 3, 4),
    "all": lambda x: fn.cast(
        cropped(fn.brightness(fn.cast(cropped_once(x), dtype=types.INT16), brightness=1.7)),
        dtype=types.FLOAT,
    ),
}


def cropped_once(x):
    return fn.crop(x, crop=(24, 26), crop_pos_y=0.2)


@pytest.mark.sweep
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
@pytest.mark.parametrize("warp", WARPS.values(), ids=WARPS)
def test_chains(warp, chain):
    assert_fusion_changes_nothing(lambda x: chain(warp(x)))


@pytest.mark.usefixtures("one_kernel")
@pytest.mark.parametrize("chain", CHAINS.values(), ids=CHAINS)
def test_chains_are_one_kernel(chain):
    fused(lambda x: chain(warped(x)))


def test_chains_are_normalized():
    def graph(x):
        x = fn.brightness(fn.cast(warped(x), dtype=types.INT16), brightness=numbers(1, 2, 3, 0.5))
        return fn.crop_mirror_normalize(x, crop=(20, 22), mirror=1, **STATISTICS)

    assert_fusion_changes_nothing(graph)


@pytest.mark.sweep
@pytest.mark.sanitize
@pytest.mark.parametrize("dtype", [np.int16, np.int32, np.float32])
@pytest.mark.parametrize("channels", [1, 2, 4, 5])
def test_types_and_channels(dtype, channels):
    shapes = [(*shape[:2], channels) for shape in SHAPES["HWC"]]
    assert_fusion_changes_nothing(lambda x: cropped(turned(x)), dtype=dtype, shapes=shapes)
    assert_fusion_changes_nothing(
        lambda x: fn.crop_mirror_normalize(turned(x), crop=(9, 11), mirror=1, mean=99.0, std=3.5),
        dtype=dtype,
        shapes=shapes,
    )


@pytest.mark.parametrize("channels", [1, 2, 4, 5])
def test_bytes_of_any_number_of_channels(channels):
    shapes = [(*shape[:2], channels) for shape in SHAPES["HWC"]]
    assert_fusion_changes_nothing(lambda x: cropped(turned(x)), shapes=shapes)
    assert_fusion_changes_nothing(
        lambda x: fn.crop_mirror_normalize(turned(x), crop=(9, 11), mirror=1, mean=99.0, std=3.5),
        shapes=shapes,
    )


@pytest.mark.sanitize
def test_volumes():
    def warp(x):
        return fn.rotate(x, angle=numbers(10, -70, 33, 90), axis=(1, 2, 3))

    assert_fusion_changes_nothing(warp, "DHWC")

    def windows(x):
        x = fn.crop(warp(x), crop=(3, 14, 19), crop_pos_z=0.7)
        x = fn.flip(x, horizontal=numbers(1, 0, 1, 0, dtype=np.int32), depthwise=1, vertical=1)
        return fn.slice(x, start=[1, 3], end=[3, 12], axes=[0, 2])

    assert_fusion_changes_nothing(windows, "DHWC")
    assert_fusion_changes_nothing(
        lambda x: fn.crop_mirror_normalize(
            warp(x), crop=(3, 14, 19), output_layout="CDHW", mirror=1, mean=99.0, std=3.5
        ),
        "DHWC",
    )


@pytest.mark.sanitize
def test_windows_beyond_runs_of_columns():
    def warp(x):
        return fn.warp_affine(x, numbers(*MATRICES), size=(70, 1100))

    for left in (0, 250, 256, 300, 511, 800):
        assert_fusion_changes_nothing(
            lambda x, left=left: fn.slice(warp(x), start=[33, left], shape=[36, 290], axes=[0, 1])
        )
        assert_fusion_changes_nothing(
            lambda x, left=left: fn.crop_mirror_normalize(
                fn.slice(warp(x), start=[33, left], shape=[36, 290], axes=[0, 1]), mirror=1
            )
        )


def test_windows_without_elements():
    assert_fusion_changes_nothing(
        lambda x: fn.slice(warped(x), start=[3, 3], shape=[0, 5], axes=[0, 1])
    )


def test_windows_that_leave_the_canvas():
    assert_fusion_changes_nothing(
        lambda x: fn.crop(warped(x), crop=(90, 40), out_of_bounds_policy="pad", fill_values=9)
    )
    assert_fusion_changes_nothing(
        lambda x: fn.crop_mirror_normalize(
            warped(x), crop=(90, 40), out_of_bounds_policy="pad", fill_values=9
        )
    )


def test_some_channels():
    assert_fusion_changes_nothing(lambda x: fn.slice(warped(x), start=[1], shape=[2], axes=[2]))


def test_arithmetic_of_two_batches():
    assert_fusion_changes_nothing(lambda x: warped(x) + x)
    assert_fusion_changes_nothing(lambda x: warped(x) // numbers(1, 2, 3, 4, dtype=np.int32))


def test_a_warp_of_a_warp():
    assert_fusion_changes_nothing(lambda x: turned(warped(x)))
    assert_fusion_changes_nothing(lambda x: fn.resize(turned(x), size=(20, 24)))


def test_inputs_without_elements():
    shapes = [(0, 5, 3), (7, 8, 3), (4, 0, 3), (2, 3, 3)]
    assert_fusion_changes_nothing(
        lambda x: fn.crop_mirror_normalize(warped(x, size=(9, 9), fill_value=4), crop=(5, 5)),
        shapes=shapes,
    )


def test_two_launches(gpu_runtime):
    rows = random_rows(*SHAPES["HWC"])
    outputs(
        rows,
        "HWC",
        lambda x: fn.crop_mirror_normalize(cropped(warped(x)), **STATISTICS),
        fuse=True,
    )
    if isinstance(gpu_runtime, EmulatedRuntime):
        # The first is the upload.
        assert [n.split("<")[0] for n in gpu_runtime.launches][1:] == ["warp_bytes_placed"]
    assert WarpedBatch
