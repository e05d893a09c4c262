"""Files of NumPy: what NumPy writes is read as NumPy reads it."""

from __future__ import annotations

import io
import warnings

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra import numpy as hnp

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn, types
from headrace.errors import BadSampleError
from headrace.kernels.cpu.npy import header_of

KINDS = ("i2", "u2", "i4", "u4", "i8", "u8", "f2", "f4", "f8")
TYPES = [order + kind for order in "<>" for kind in KINDS]


def written(array, version=None):
    file = io.BytesIO()
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # NumPy's, of later versions than needed
        np.lib.format.write_array(file, array, version)
    return np.frombuffer(file.getvalue(), np.uint8)


def with_header(text, version=1, elements=b""):
    size = len(text).to_bytes(2 if version == 1 else 4, "little")
    data = b"\x93NUMPY" + bytes([version, 0]) + size + text.encode("latin-1") + elements
    return np.frombuffer(data, np.uint8)


@given(st.data())
def test_arrays(data):
    dtype = np.dtype(data.draw(st.sampled_from([*TYPES, "i1", "u1", "?"])))
    shape = data.draw(hnp.array_shapes(min_dims=0, max_dims=5, min_side=0, max_side=5))
    array = data.draw(hnp.arrays(dtype, shape))
    array = np.array(array, order=data.draw(st.sampled_from("CF")))
    encoded = written(array, data.draw(st.sampled_from([(1, 0), (2, 0), (3, 0)])))
    encoded = np.append(np.zeros(data.draw(st.integers(0, 3)), np.uint8), encoded)[
        -encoded.size :
    ]  # at odd places in memory, too
    found = header_of(encoded).array(encoded)
    assert found.dtype == dtype.newbyteorder("=")
    np.testing.assert_array_equal(found, array)


@pytest.mark.parametrize(
    ("text", "shape"),
    [
        ("{'descr': '<i2', 'fortran_order': False, 'shape': (2L, 3L), }\n", (2, 3)),
        ('{"shape":(3,),"descr":"<i2","fortran_order":True}', (3,)),
        ("{ 'descr' : '|u1' , 'shape' : ( ) ,\n 'fortran_order':False}   ", ()),
    ],
)
def test_other_spellings(text, shape):
    data = with_header(text, elements=bytes(12))
    assert header_of(data).shape == shape


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("shape", "words"),
    [
        ("(-2, 3)", "negative extents"),
        ("(-2, -3)", "negative extents"),
        ("(3)", "damaged"),
        ("(3,,)", "damaged"),
        ("(3 3)", "damaged"),
        ("(4611686018427387904, 4)", "more than any has"),
        ("(0, 9223372036854775808)", "more than any has"),
        ("(1000000, 1000000)", "bytes"),
        ("(True, 3)", "damaged"),
        ("(2, 3), 'more': 1", "damaged"),
        ("(2, 3), 'shape': (2, 3)", "damaged"),
    ],
)
@pytest.mark.parametrize("version", [1, 2, 3])
def test_impossible_shapes(shape, words, version):
    text = f"{{'descr': '<i2', 'fortran_order': False, 'shape': {shape}, }}\n"
    with pytest.raises(BadSampleError, match=words):
        header_of(with_header(text, version, bytes(12)))


@pytest.mark.parametrize(
    ("dtype", "words"),
    [
        ([("a", "<i2"), ("b", "<f4")], "several fields"),
        ("c8", "of type <c8"),
        ("g", "of type"),
        ("S3", "of type"),
        ("M8[s]", "of type"),
    ],
)
def test_refused_types(dtype, words):
    with pytest.raises(BadSampleError, match=f"Unknown Numpy type string.*{words}"):
        header_of(written(np.zeros(2, dtype)))


def test_big_endian_files_everywhere(tmp_path):
    arrays = [np.arange(6, dtype=dtype).reshape(2, 3) for dtype in (">i4", "<i4")]
    files = []
    for k, array in enumerate(arrays):
        np.save(tmp_path / f"{k}.npy", array if k else np.asfortranarray(array))
        files.append(str(tmp_path / f"{k}.npy"))
    pipe = Pipeline(2, 1, None)
    with pipe:
        encoded, _ = fn.readers.file(files=files)
        region = fn.readers.numpy(
            files=files, roi_start=[1, -1], roi_shape=[1, 3], out_of_bounds_policy="pad"
        )
        pipe.set_outputs(
            fn.readers.numpy(files=files),
            region,
            fn.decoders.numpy(encoded),
            fn.decoders.numpy(encoded, dtype=types.FLOAT),
        )
    whole, region, decoded, converted = pipe.run()
    assert whole.dtype == decoded.dtype == types.INT32
    for k, array in enumerate(arrays):
        for found in (whole, decoded, converted):
            np.testing.assert_array_equal(np.array(found[k]), array)
        np.testing.assert_array_equal(np.array(region[k]), [[0, 3, 4]])
    for (batch,) in ndd.readers.Numpy(files=files).next_epoch(batch_size=2):
        for sample, array in zip(batch.tensors, arrays, strict=True):
            np.testing.assert_array_equal(np.array(sample), array)
    for encoded, array in zip(map(written, arrays), arrays, strict=True):
        np.testing.assert_array_equal(np.array(ndd.decoders.numpy(encoded)), array)
