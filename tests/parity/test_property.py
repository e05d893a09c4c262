"""`fn.get_property` and `fn.per_frame` against DALI."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.support import assert_both_raise, assert_parity


@pytest.mark.parametrize(
    ("shape", "layout"), [((2, 3, 4), "HWC"), ((2, 3, 4), ""), ((3,), "F"), ((), "")]
)
def test_layout(shape, layout):
    assert_parity(
        lambda lib, x: lib.fn.get_property(x, key="layout"),
        [np.zeros(shape, np.float32)] * 3,
        layouts=layout,
        max_levels=0,
    )


def test_source_of_fed_data_is_unknown():
    assert_parity(
        lambda lib, x: lib.fn.get_property(x, key="source_info"), [np.zeros((2, 3), np.uint8)]
    )


def test_source_of_files_survives_operators(tmp_path):
    for name in ("one", "three"):
        (tmp_path / f"{name}.bin").write_bytes(bytes(24))
    files = [str(tmp_path / f"{name}.bin") for name in ("one", "three")]

    def graph(lib):
        data, _ = lib.fn.readers.file(files=files)
        fn = lib.fn
        steps = (
            data,
            fn.reshape(data, shape=[2, 3, 4]),
            fn.cast(data, dtype=lib.types.FLOAT),
            fn.slice(data, start=[0], shape=[2], axes=[0]),
            fn.copy(data),
            fn.transpose(data),
            fn.flip(fn.crop(fn.reshape(data, shape=[2, 3, 4], layout="HWC"), crop=(1, 1))),
            # What has a source gives it to what is made of it and of what has none.
            fn.cat(lib.types.Constant(np.zeros(3, np.uint8)), data),
            fn.stack(fn.zeros_like(data), data) + 1,
        )
        images = fn.reshape(data, shape=[2, 4, 3], layout="HWC")
        size = {"output_size": (4, 4)}
        pasted = (
            fn.multi_paste(images, in_ids=np.int32([1, 0, 1]), **size),
            fn.multi_paste(images, images, **size),
            fn.permute_batch(images, indices=[1, 1]),
        )
        return tuple(fn.get_property(step, key="source_info") for step in (*steps, *pasted))

    assert_parity(graph, max_levels=0, batch_size=2)


@pytest.mark.parametrize("key", ["shape", "", "Layout"])
def test_other_keys(key):
    assert_both_raise(
        lambda lib, x: lib.fn.get_property(x, key=key), [np.zeros(3, np.uint8)], match="key"
    )


def test_key_is_required():
    assert_both_raise(lambda lib, x: lib.fn.get_property(x), [np.zeros(3, np.uint8)], match="key")


@pytest.mark.sweep
@pytest.mark.parametrize("replace", [None, False, True])
@pytest.mark.parametrize(
    ("shape", "layout"), [((2, 3, 4), ""), ((2, 3, 4), "FHW"), ((3,), "F"), ((3,), "")]
)
def test_per_frame(shape, layout, replace):
    assert_parity(
        lambda lib, x: lib.fn.per_frame(x, replace=replace),
        [np.zeros(shape, np.float32)],
        layouts=layout,
    )


def test_per_frame_replaces_the_first_axis():
    assert_parity(
        lambda lib, x: lib.fn.per_frame(x, replace=True),
        [np.zeros((2, 3, 4), np.float32)],
        layouts="HWC",
    )


@pytest.mark.parametrize(
    ("shape", "layout", "replace"), [((2, 3, 4), "HWC", False), ((), "", False), ((), "", True)]
)
def test_errors_of_per_frame(shape, layout, replace):
    assert_both_raise(
        lambda lib, x: lib.fn.per_frame(x, replace=replace),
        [np.zeros(shape, np.float32)],
        layouts=layout,
    )
