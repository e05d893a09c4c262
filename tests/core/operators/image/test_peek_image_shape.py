from __future__ import annotations

import itertools

import numpy as np
import pytest

from headrace.errors import ArgumentChoiceError, BadSampleError, ShapeError
from headrace.types import DALIDataType, DALIImageType
from tests.support.encoded_images import everything, jpegs, unsupported
from tests.support.run_operator import run_operator

OUTPUT_TYPES = ["RGB", "GRAY", "YCbCr", "ANY_DATA"]


def peek(data, **args):
    return run_operator("peek_image_shape", np.frombuffer(data, np.uint8), **args)


def test_it_is_the_shape_of_the_decoded_image():
    for name in everything():
        image = everything()[name]
        for output_type, adjust in itertools.product(OUTPUT_TYPES, (True, False)):
            kind = DALIImageType[output_type]
            found = peek(image, image_type=kind, adjust_orientation=adjust)
            assert found.dtype == np.int64, name
            try:
                decoded = run_operator(
                    "decoders.image",
                    np.frombuffer(image, np.uint8),
                    output_type=kind,
                    adjust_orientation=adjust,
                )
            except BadSampleError:  # kinds of pixels that are recognised but not decoded
                assert found.shape == (3,), name
            else:
                assert tuple(found) == decoded.shape, name


def test_the_header_is_enough():
    image = jpegs()["jpeg-200x300"]
    header = image[: image.index(b"\xff\xda") + 20]
    np.testing.assert_array_equal(peek(header), [200, 300, 3])


@pytest.mark.parametrize("dtype", ["INT32", "UINT32", "INT64", "UINT64", "FLOAT", "FLOAT64"])
def test_types(dtype):
    found = peek(jpegs()["jpeg-200x300"], dtype=DALIDataType[dtype])
    assert found.dtype.name == {"FLOAT": "float32"}.get(dtype, dtype.lower())
    np.testing.assert_array_equal(found, [200, 300, 3])


@pytest.mark.parametrize("dtype", ["UINT8", "INT16", "FLOAT16", "BOOL"])
def test_other_types_are_refused(dtype):
    with pytest.raises(ArgumentChoiceError, match=dtype):
        peek(jpegs()["jpeg-200x300"], dtype=DALIDataType[dtype])


@pytest.mark.parametrize("name", list(unsupported()))
def test_what_is_no_image_has_no_shape(name):
    with pytest.raises(BadSampleError):
        peek(unsupported()[name])


def test_input_must_be_flat():
    with pytest.raises(ShapeError, match="flat"):
        run_operator("peek_image_shape", np.zeros((4, 4), np.uint8))


def test_batches_of_all_kinds():
    from headrace import fn
    from headrace.pipeline import Pipeline

    files = [np.frombuffer(data, np.uint8) for data in everything().values()]
    pipe = Pipeline(len(files), 1, None)
    with pipe:
        encoded = fn.external_source(source=lambda: files)
        pipe.set_outputs(fn.peek_image_shape(encoded, image_type=DALIImageType.ANY_DATA))
    pipe.build()
    (found,) = pipe.run()
    expected = [peek(data, image_type=DALIImageType.ANY_DATA) for data in everything().values()]
    np.testing.assert_array_equal(found.as_array(), expected)
