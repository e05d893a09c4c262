"""What `headrace.types` has besides element types and constants."""

from __future__ import annotations

import ctypes

import pytest

from headrace import types


def test_members_at_module_level():
    for cls in (types.DALIDataType, types.DALIImageType, types.DALIInterpType):
        for member in cls:
            if not member.name.startswith(("_", "FEATURE")):
                assert getattr(types, member.name) is member


def test_all_names_exist():
    for name in types.__all__:
        assert hasattr(types, name)


def test_layouts_speak_of_one_sample():
    assert (types.NHWC, types.NCHW, types.NFHWC, types.NFCHW, types.SAME) == (
        "HWC", "CHW", "FHWC", "FCHW", "",
    )  # fmt: skip


def test_tensor_layout():
    layout = types.TensorLayout("HWC")
    assert layout == "HWC"
    assert str(layout) == "HWC"
    assert len(layout) == 3
    assert isinstance(layout, str)
    assert "TensorLayout('HWC')" in repr(layout)
    with pytest.raises(TypeError, match="int"):
        types.TensorLayout(3)


def test_infos():
    sample = types.SampleInfo(1, 2, 3, 4)
    assert vars(sample) == {"idx_in_epoch": 1, "idx_in_batch": 2, "iteration": 3, "epoch_idx": 4}
    batch = types.BatchInfo(iteration=5, epoch_idx=6)
    assert vars(batch) == {"iteration": 5, "epoch_idx": 6}
    assert "iteration=5" in repr(batch)


class Protocol:
    def __cuda_stream__(self):
        return (0, 11)


class Torch:
    cuda_stream = 12


class CuPy:
    ptr = 13


class Handle:
    handle = 14


@pytest.mark.parametrize(
    ("stream", "expected"),
    [
        (None, None),
        (0, 0),
        (7, 7),
        (ctypes.c_void_p(8), 8),
        (ctypes.c_void_p(None), 0),
        (types.CUDAStream(), 0),
        (types.CUDAStream(9), 9),
        (Protocol(), 11),
        (Torch(), 12),
        (CuPy(), 13),
        (Handle(), 14),
    ],
)
def test_streams(stream, expected):
    assert types.raw_cuda_stream(stream) == expected


@pytest.mark.parametrize("stream", ["default", 1.5, [], True])
def test_no_stream(stream):
    with pytest.raises(TypeError, match="CUDA stream"):
        types.raw_cuda_stream(stream)


def test_policies():
    assert types.CPU_ONLY_DEVICE_ID == -99999
    assert [p.name for p in types.StreamPolicy] == [
        "SINGLE", "PER_BACKEND", "PER_OPERATOR", "UNSPECIFIED",
    ]  # fmt: skip
    assert [c.name for c in types.OperatorConcurrency] == ["NONE", "BACKEND", "FULL", "UNSPECIFIED"]
