"""Descriptions of the features of TFRecord files."""

from __future__ import annotations

import pytest

from headrace import tfrecord


def test_features():
    assert (tfrecord.int64, tfrecord.string, tfrecord.float32) == (0, 1, 2)
    for feature, shape, dtype, default, has_shape, text in (
        (tfrecord.FixedLenFeature((), tfrecord.string, ""), (), 1, "", True, "[], string, ''"),
        (tfrecord.FixedLenFeature([2, 3], 2, 0.5), (2, 3), 2, 0.5, True, "[2, 3], float32, 0.5"),
        (tfrecord.VarLenFeature(tfrecord.int64, -1), (), 0, -1, False, "int64, -1"),
        (tfrecord.VarLenFeature([4], tfrecord.int64, 0), (4,), 0, 0, False, "[4], int64, 0"),
    ):
        assert isinstance(feature, tfrecord.Feature)
        assert (feature.shape, feature.dtype) == (shape, dtype)
        assert (feature.default_value, feature.has_shape) == (default, has_shape)
        assert repr(feature) == f"{'Fixed' if has_shape else 'Var'}LenFeature({text})"


def test_mistakes():
    for make, error, words in (
        (lambda: tfrecord.FixedLenFeature(1, 0, 0), TypeError, "list of integers"),
        (lambda: tfrecord.FixedLenFeature([1.5], 0, 0), TypeError, "list of integers"),
        (lambda: tfrecord.FixedLenFeature([], "x", 0), TypeError, "expected `tfrecord.int64`"),
        (lambda: tfrecord.FixedLenFeature([], 7, 0), ValueError, "the type is 7"),
        (lambda: tfrecord.FixedLenFeature([], 0, 1.5), RuntimeError, "of type int, got 1.5"),
        (lambda: tfrecord.FixedLenFeature([], 2, 1), RuntimeError, "of type float, got 1"),
        (lambda: tfrecord.FixedLenFeature([], 1, b"x"), RuntimeError, "of type str"),
        (lambda: tfrecord.VarLenFeature(0), TypeError, "got 1 arguments"),
        (lambda: tfrecord.FixedLenFeature([], 0), TypeError, "default_value"),
    ):
        with pytest.raises(error, match=words):
            make()
