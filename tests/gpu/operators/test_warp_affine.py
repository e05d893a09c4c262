"""`warp_affine` on the GPU gives what it gives on the CPU."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.fn as fn
from headrace.errors import ArgumentValueError, ShapeError
from headrace.pipeline import Pipeline
from headrace.types import DALIDataType, DALIInterpType
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

SHAPES = [(31, 44), (1, 1), (9, 300), (64, 5)]


def noise(*shape, dtype="uint8"):
    return (np.random.default_rng(0).random(shape) * 200).astype(dtype)


def images(dtype="uint8", channels=3):
    return [noise(*shape, channels, dtype=dtype) for shape in SHAPES]


def volumes():
    return [noise(*shape, 1) for shape in [(4, 9, 12), (1, 1, 1), (3, 20, 7), (2, 2, 2)]]


def matrices(rank, count, seed=0):
    random = np.random.default_rng(seed)
    linear = np.eye(rank) + random.normal(size=(count, rank, rank)) * 0.3
    offset = random.normal(size=(count, rank, 1)) * 3
    return list(np.concatenate([linear, offset], axis=2).astype(np.float32))


def same(*inputs, layout="HWC", **arguments):
    layouts = [layout, *[""] * (len(inputs) - 1)] if isinstance(layout, str) else layout
    found = run_gpu_operator("warp_affine", *inputs, layout=layouts, **arguments)
    expected = run_cpu_operator_on_batch("warp_affine", *inputs, layout=layouts, **arguments)
    for got, wanted in zip(found, expected, strict=True):
        np.testing.assert_array_equal(got, wanted)
    return found


@pytest.mark.sweep(pairs=True)
@pytest.mark.sanitize
@pytest.mark.parametrize("inverse", [True, False])
@pytest.mark.parametrize("interpolation", [DALIInterpType.INTERP_NN, DALIInterpType.INTERP_LINEAR])
@pytest.mark.parametrize("dtype", ["uint8", "int16", "int32", "float32"])
def test_types(dtype, interpolation, inverse):
    given = {"interp_type": interpolation, "inverse_map": inverse}
    for data, rank, layout in ((images(dtype), 2, "HWC"), (volumes(), 3, "DHWC")):
        same(data, matrices(rank, 4), layout=layout, **given)
        same(data, matrix=matrices(rank, 4), layout=layout, fill_value=3.5, **given)


@pytest.mark.parametrize("inverse", [True, False])
def test_one_matrix_for_all(inverse):
    same(images(), matrix=(0.9, 0.2, 3, -0.1, 1.2, -4.5), inverse_map=inverse)
    volume = (0.9, 0.2, 0, 3, -0.1, 1.2, 0, -4.5, 0, 0.1, 1, 0.3)
    same(volumes(), matrix=volume, layout="DHWC", inverse_map=inverse)


def test_sizes():
    same(images(), matrices(2, 4), size=(20, 300))
    sizes = [np.array(s, np.float32) for s in [(3, 4), (0, 5), (40, 2), (1, 1)]]
    same(images(), matrices(2, 4), size=sizes, dtype=DALIDataType.FLOAT)


@pytest.mark.sanitize
def test_sequences():
    data = [noise(3, 9, 12, 3), noise(2, 30, 7, 3)]
    same(data, matrices(2, 2), layout=["FHWC", ""])
    framed = [np.stack(matrices(2, len(x), seed=k)) for k, x in enumerate(data)]
    for inverse in (True, False):
        same(data, framed, layout=["FHWC", "F**"], inverse_map=inverse)
        same(
            data,
            matrix=framed,
            layout="FHWC",
            arg_layouts={"matrix": "F**"},
            inverse_map=inverse,
            size=(8, 8),
        )


def test_a_matrix_for_each_frame_makes_a_sequence():
    data = [noise(9, 12, 3), noise(30, 7, 3)]
    framed = [np.stack(matrices(2, 3)), np.stack(matrices(2, 1))]
    found = same(data, framed, layout=["HWC", "F**"])
    assert [len(x) for x in found] == [3, 1]


def test_singular_matrices():
    singular = np.array([[1, 1, 0], [1, 1, 0]], np.float32)
    with pytest.raises(ArgumentValueError, match="singular"):
        run_gpu_operator(
            "warp_affine",
            images(),
            matrix=[*matrices(2, 3), singular],
            layout="HWC",
            inverse_map=False,
        )


def test_bad_shapes():
    for rows in ([np.zeros((3, 2), np.float32)] * 4, [np.zeros(6, np.float32)] * 4):
        with pytest.raises(ShapeError, match="shape"):
            run_gpu_operator("warp_affine", images(), rows, layout=["HWC", ""])
        with pytest.raises(ShapeError, match="shape"):
            run_gpu_operator("warp_affine", images(), matrix=rows, layout="HWC")


def _pipeline(data, given, layouts, device, **arguments):
    pipe = Pipeline(batch_size=len(data), num_threads=2, device_id=0, prefetch_queue_depth=1)
    with pipe:
        x = fn.external_source(lambda: data, layout=layouts[0], batch=True)
        m = fn.external_source(lambda: given, layout=layouts[1], batch=True)
        wanted = fn.warp_affine(x, m, **arguments)
        m = m.gpu() if device == "gpu" else m
        pipe.set_outputs(fn.warp_affine(x.gpu(), m, **arguments).cpu(), wanted)
    pipe.build()
    found, expected = pipe.run()
    for got, want in zip(found, expected, strict=True):
        np.testing.assert_array_equal(np.array(got), np.array(want))


@pytest.mark.parametrize("device", ["cpu", "gpu"])
@pytest.mark.parametrize("inverse", [True, False])
def test_matrices_on_either_device(device, inverse):
    given = {"inverse_map": inverse, "fill_value": 4}
    _pipeline(images(), matrices(2, 4), ["HWC", None], device, **given)
    framed = [np.stack(matrices(2, 3, seed=k)) for k in range(4)]
    _pipeline(images(), framed, ["HWC", "F**"], device, **given)
    _pipeline([noise(3, 9, 12, 3)] * 4, framed, ["FHWC", "F**"], device, **given)
    _pipeline([noise(3, 9, 12, 3)] * 4, matrices(2, 4), ["FHWC", None], device, **given)


def test_a_singular_matrix_on_the_gpu_is_told_of():
    singular = np.array([[1, 1, 0], [1, 1, 0]], np.float32)
    with pytest.raises(ArgumentValueError, match="singular"):
        _pipeline(images(), [*matrices(2, 3), singular], ["HWC", None], "gpu", inverse_map=False)


@pytest.mark.parametrize("fuse", [True, False])
def test_matrices_from_wherever_they_come(fuse):
    data = images()
    pipe = Pipeline(batch_size=len(data), num_threads=2, device_id=0, seed=3, fuse=fuse)
    with pipe:
        x = fn.external_source(lambda: data, layout="HWC", batch=True)
        turn = fn.transforms.rotation(angle=fn.random.uniform(range=(-90, 90)), center=(20, 15))
        literal = np.array([[0.9, 0.1, 2], [0.2, 1.1, -3]], np.float32)
        outputs = []
        for given, on_host in ((turn, turn), (turn.gpu(), turn), (literal, literal)):
            outputs += [fn.warp_affine(x.gpu(), given).cpu(), fn.warp_affine(x, on_host)]
        by_argument = fn.warp_affine(x.gpu(), matrix=turn, size=(20, 31))
        outputs += [by_argument.cpu(), fn.warp_affine(x, matrix=turn, size=(20, 31))]
        pipe.set_outputs(*outputs)
    for _ in range(3):
        found = pipe.run()
        for got, want in zip(found[::2], found[1::2], strict=True):
            for one, other in zip(got, want, strict=True):
                np.testing.assert_array_equal(np.array(one), np.array(other))
