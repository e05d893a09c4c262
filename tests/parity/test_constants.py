"""Constants in a graph beside DALI's: as outputs, inputs, arguments and operands."""

from __future__ import annotations

import jax.numpy as jnp
import numpy as np
import pytest
import torch

import headrace
from tests.parity.outcomes import Table, assert_differs, assert_same

BATCH = np.arange(6, dtype=np.int32).reshape(2, 3)


def graph(define):
    """A scenario whose definition is ``define(lib, types)``; the batch is of 2 samples."""
    return lambda lib: lib.pipe(lambda: define(lib, lib.types)).run()


def feed(lib):
    return lib.fn.external_source(source=lambda: BATCH)


constants = Table()

constants(
    scalar=graph(lambda lib, t: t.Constant(3)),
    scalar_and_data=graph(lambda lib, t: (feed(lib), t.Constant(3))),
    scalar_layout=graph(lambda lib, t: t.Constant(3, layout="")),
    scalar_shape_empty=graph(lambda lib, t: t.Constant(3, shape=[])),
    scalar_shape_one=graph(lambda lib, t: t.Constant(3, shape=[1])),
    scalar_shape_number=graph(lambda lib, t: t.Constant(3, shape=4)),
    scalar_shape=graph(lambda lib, t: t.Constant(3, shape=(2, 2))),
    scalar_shape_and_layout=graph(lambda lib, t: t.Constant(3, shape=(2, 2), layout="HW")),
    scalar_shape_zero=graph(lambda lib, t: t.Constant(3, shape=(0, 2))),
    scalar_device=graph(lambda lib, t: t.Constant(3, device="cpu")),
    scalar_device_unknown=graph(lambda lib, t: t.Constant(3, device="tpu")),
    scalar_name=graph(lambda lib, t: t.Constant(3, name="c")),
    scalar_dtype=graph(lambda lib, t: t.Constant(3, dtype=t.UINT8)),
    scalar_float16=graph(lambda lib, t: t.Constant(3, dtype=t.FLOAT16)),
    scalar_int64=graph(lambda lib, t: t.Constant(3).int64()),
    scalar_uint8_out_of_range=graph(lambda lib, t: t.Constant(300).uint8()),
    scalar_int8_of_a_float=graph(lambda lib, t: t.Constant(3.7).int8()),
    list_of_ints=graph(lambda lib, t: t.Constant([1, 2, 3])),
    list_of_floats=graph(lambda lib, t: t.Constant([1, 2.5])),
    list_of_bools=graph(lambda lib, t: t.Constant([True, False])),
    list_shape=graph(lambda lib, t: t.Constant([1, 2, 3, 4], shape=(2, 2))),
    list_layout=graph(lambda lib, t: t.Constant([1, 2], layout="C")),
    list_layout_wrong=graph(lambda lib, t: t.Constant([1, 2], layout="HW")),
    list_shape_wrong=graph(lambda lib, t: t.Constant([1, 2, 3], shape=(2, 2))),
    list_of_one=graph(lambda lib, t: t.Constant([5])),
    list_of_one_with_a_shape=graph(lambda lib, t: t.Constant([5], shape=(2,))),
    list_empty=graph(lambda lib, t: t.Constant([])),
    tuple_=graph(lambda lib, t: t.Constant((1, 2))),
    range_=graph(lambda lib, t: t.Constant(range(3))),
    array=graph(lambda lib, t: t.Constant(np.arange(4).reshape(2, 2))),
    array_layout=graph(lambda lib, t: t.Constant(np.zeros((2, 2), np.uint8), layout="HW")),
    array_layout_wrong=graph(lambda lib, t: t.Constant(np.zeros((2, 2), np.uint8), layout="C")),
    array_dtype=graph(lambda lib, t: t.Constant(np.array([1.5, 300]), dtype=t.UINT8)),
    array_double=graph(lambda lib, t: t.Constant(np.array([1.5]))),
    array_shape=graph(lambda lib, t: t.Constant(np.arange(4), shape=(2, 2))),
    array_of_no_dimensions=graph(lambda lib, t: t.Constant(np.array(3))),
    array_of_no_dimensions_with_a_layout=graph(lambda lib, t: t.Constant(np.array(3), layout="")),
    numpy_scalar=graph(lambda lib, t: t.Constant(np.int16(3))),
    enum_in_a_cast=graph(lambda lib, t: lib.fn.cast(t.Constant(t.GRAY), dtype=t.INT32)),
    enums_in_a_cast=graph(lambda lib, t: lib.fn.cast(t.Constant([t.GRAY, t.RGB]), dtype=t.INT32)),
    text=graph(lambda lib, t: t.Constant("a")),
    none=graph(lambda lib, t: t.Constant(None)),
    nested=graph(lambda lib, t: t.Constant([[1], [2]])),
    complex_=graph(lambda lib, t: t.Constant(1j)),
    unknown_argument=graph(lambda lib, t: t.Constant([1], foo=3)),
    twice=graph(lambda lib, t: (c := t.Constant([1, 2]), c)),
    kept_when_the_array_changes=graph(
        lambda lib, t: (a := np.array([1, 2], np.int32), c := t.Constant(a), a.fill(7), c)[1::2][:1]
    ),
    as_an_argument=graph(lambda lib, t: lib.fn.reshape(feed(lib), shape=t.Constant([3, 1]))),
    scalar_as_an_argument=graph(lambda lib, t: lib.fn.reshape(feed(lib), shape=t.Constant(3))),
    as_an_input=graph(lambda lib, t: lib.fn.copy(t.Constant([1, 2], layout="C"))),
    scalar_as_an_input=graph(lambda lib, t: lib.fn.copy(t.Constant(3).uint8())),
    in_arithmetic=graph(lambda lib, t: feed(lib) + t.Constant([1, 2, 3])),
    scalar_in_arithmetic=graph(lambda lib, t: feed(lib) + t.Constant(3).uint8()),
    scalar_in_arithmetic_on_the_left=graph(lambda lib, t: t.Constant(3).float64() - feed(lib)),
    two_scalars=graph(lambda lib, t: t.Constant(3) + t.Constant(4)),
    two_nodes=graph(lambda lib, t: t.Constant([3]) + t.Constant([4])),
    indexed=graph(lambda lib, t: t.Constant([3, 4, 5])[1]),
    scalar_indexed=graph(lambda lib, t: t.Constant(3)[0]),
    in_math=graph(lambda lib, t: lib.math.sqrt(t.Constant([4.0]))),
    scalar_in_math=graph(lambda lib, t: lib.math.sqrt(t.Constant(4.0))),
    number_in_math=graph(lambda lib, t: lib.math.sqrt(4.0)),
    array_in_math=graph(lambda lib, t: lib.math.sqrt(np.array([4.0, 9.0], np.float32))),
    number_and_node_in_math=graph(lambda lib, t: lib.math.max(feed(lib), 3)),
    two_numbers_in_math=graph(lambda lib, t: lib.math.max(4, 3)),
    clamp=graph(lambda lib, t: lib.math.clamp(feed(lib), 1, 4)),
    clamp_by_name=graph(lambda lib, t: lib.math.clamp(feed(lib), lo=1, hi=4)),
    pow_by_name=graph(lambda lib, t: lib.math.pow(base=feed(lib), exponent=2)),
    atan2_by_name=graph(lambda lib, t: lib.math.atan2(feed(lib), x=2)),
    max_by_name=graph(lambda lib, t: lib.math.max(left=feed(lib), right=2)),
    text_in_math=graph(lambda lib, t: lib.math.sqrt("a")),
    none_in_math=graph(lambda lib, t: lib.math.sqrt(None)),
    python_max=graph(lambda lib, t: lib.math.max(feed(lib))),
    math_names=lambda lib: [
        n
        for n in dir(lib.math)
        if not n.startswith("_")
        and callable(getattr(lib.math, n))
        and getattr(getattr(lib.math, n), "__module__", "").endswith(".math")
    ],
    tensor_as_an_input=graph(lambda lib, t: lib.fn.copy(torch.arange(3))),
    tensor_with_gradient=graph(lambda lib, t: lib.fn.copy(torch.ones(2, requires_grad=True))),
    tensor_of_no_dimensions=graph(lambda lib, t: lib.fn.copy(torch.tensor(3))),
    tensor_of_a_type_that_numpy_lacks=graph(
        lambda lib, t: lib.fn.copy(torch.ones(2, dtype=torch.bfloat16))
    ),
    tensor_as_an_output=graph(lambda lib, t: (torch.arange(2), t.Constant(3))),
    tensor_in_arithmetic=graph(lambda lib, t: feed(lib) + torch.ones(3)),
    tensor_on_the_left=graph(lambda lib, t: torch.ones(3) - feed(lib)),
    tensor_of_no_dimensions_in_arithmetic=graph(lambda lib, t: feed(lib) + torch.tensor(3)),
    tensor_as_an_argument=graph(
        lambda lib, t: lib.fn.crop(np.ones((9, 9, 3), np.uint8), crop=torch.tensor([4.0, 5.0]))
    ),
    tensors_in_an_argument=graph(
        lambda lib, t: lib.fn.crop(np.ones((9, 9, 3), np.uint8), crop=[torch.tensor(4.0), 5])
    ),
    tensor_as_a_number=graph(
        lambda lib, t: lib.fn.rotate(np.ones((9, 9, 3), np.uint8), angle=torch.tensor([90.0]))
    ),
    tensor_as_a_mean=graph(
        lambda lib, t: lib.fn.crop_mirror_normalize(
            np.full((2, 2, 3), 9, np.uint8), mean=torch.tensor([1.0, 2.0, 3.0])
        )
    ),
    tensors_in_a_list=graph(lambda lib, t: lib.fn.copy([torch.tensor(3)])),
    operator_bool=graph(lambda lib, t: lib.fn.constant(idata=[1, 0], dtype=t.BOOL)),
    operator_scalar=graph(lambda lib, t: lib.fn.constant(idata=1)),
    operator_scalar_shape=graph(lambda lib, t: lib.fn.constant(idata=1, shape=[])),
    operator_layout=graph(lambda lib, t: lib.fn.constant(idata=1, shape=[2, 2], layout="HW")),
    operator_both=graph(lambda lib, t: lib.fn.constant(idata=1, fdata=1)),
    operator_neither=graph(lambda lib, t: lib.fn.constant(shape=[1])),
    operator_volume=graph(lambda lib, t: lib.fn.constant(idata=[1, 2], shape=[3])),
    operator_positional=graph(lambda lib, t: lib.fn.constant(1)),
    operator_class=graph(lambda lib, t: lib.ops.Constant(idata=[1, 2])()),
)


@pytest.mark.parametrize("name", constants)
def test_constants(name):
    assert_same(constants[name])


def test_arrays_of_jax_are_constants_too():
    array = jnp.arange(3.0)
    pipe = headrace.Pipeline(batch_size=2, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(headrace.fn.copy(array), feed(headrace) + array)
    copies, sums = pipe.run()
    np.testing.assert_array_equal(copies.as_array(), [[0, 1, 2]] * 2)
    np.testing.assert_array_equal(sums.as_array(), BATCH + np.arange(3))


def values(define):
    """A scenario: type and value of the first sample of the first output."""

    def scenario(lib):
        found = np.asarray(graph(define)(lib)[0].at(0))
        return [str(found.dtype), found.tolist()]

    return scenario


# Scenario; in DALI neither constants of float64 nor arithmetic in float16 exist on the CPU.
WIDER = {
    "float64_scalar": (values(lambda lib, t: t.Constant(3.5).float64()), ["float64", 3.5]),
    "float64_array": (
        values(lambda lib, t: t.Constant(np.array([1.5]), dtype=t.FLOAT64)),
        ["float64", [1.5]],
    ),
    "float64_of_numpy": (values(lambda lib, t: t.Constant(np.float64(3))), ["float64", 3.0]),
    "float64_operator": (
        values(lambda lib, t: lib.fn.constant(fdata=1.5, dtype=t.FLOAT64)),
        ["float64", [1.5]],
    ),
    "float16_in_arithmetic": (
        values(lambda lib, t: feed(lib) * t.Constant(2).float16()),
        ["float16", [0.0, 2.0, 4.0]],
    ),
}


@pytest.mark.parametrize("name", WIDER)
def test_types_that_dali_lacks(name):
    scenario, expected = WIDER[name]
    assert_differs(scenario, RuntimeError, expected)
