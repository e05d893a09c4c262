"""Data and arguments that go together, but hardly as they are meant: one warning, at their line."""

from __future__ import annotations

import functools
import inspect
import warnings

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import fn, pipeline_def, types
from headrace.errors import SuspectDataWarning

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def told(graph, shape=(20, 30, 3), dtype=np.uint8, layout="HWC", **options):
    """The warnings of three iterations of a pipeline, on images of a source."""

    @pipeline_def(batch_size=2, num_threads=1, device_id=None, **options)
    def made():
        return graph(fn.external_source(source=lambda: [np.ones(shape, dtype)] * 2, layout=layout))

    with warnings.catch_warnings(record=True) as found:
        warnings.simplefilter("always")
        pipe = made()
        for _ in range(3):
            pipe.run()
    return found


def cmn(images, **arguments):
    return fn.crop_mirror_normalize(images, dtype=types.FLOAT, **arguments)


@pytest.mark.parametrize(
    ("graph", "words"),
    [
        (lambda x: cmn(x, mean=MEAN, std=STD), ["crop_mirror_normalize", "0.485", "255"]),
        (lambda x: cmn(x, mean=[0.5], std=[0.5]), ["0.5", "uint8", "Multiply"]),
        (lambda x: fn.normalize(x, mean=0.5, stddev=0.5), ["normalize", "0.5", "`stddev` by 255"]),
        (lambda x: cmn(x, std=[1.0, 0.0, 1.0]), ["`std` is 0"]),
        (lambda x: fn.normalize(x, mean=10.0, stddev=0.0), ["`stddev` is 0"]),
    ],
    ids=range(5),
)
def test_moments_of_another_range(graph, words):
    (warning,) = told(graph)
    assert warning.category is SuspectDataWarning
    assert all(word in str(warning.message) for word in words)
    assert warning.filename == __file__
    source = inspect.getsource(inspect.getmodule(told)).splitlines()
    assert "cmn(" in source[warning.lineno - 1] or "fn." in source[warning.lineno - 1]


@pytest.mark.parametrize(
    "graph",
    [
        lambda x: cmn(x, mean=[255 * m for m in MEAN], std=[255 * s for s in STD]),
        lambda x: cmn(fn.cast(x, dtype=types.FLOAT) / 255, mean=MEAN, std=STD),
        lambda x: cmn(x, std=[255.0]),
        lambda x: cmn(x, mean=[0.5], std=[255.0]),
        lambda x: cmn(x),
        lambda x: fn.normalize(x),
        lambda x: fn.normalize(x, mean=10.0, stddev=0.0, epsilon=1.0),
    ],
    ids=range(7),
)
def test_moments_that_may_be_meant(graph):
    assert not told(graph)


@pytest.mark.parametrize("shape", [(3, 20, 30), (1, 5, 5)])
def test_planes_without_a_layout(shape):
    (warning,) = told(lambda x: fn.resize(x, size=[8, 8]), shape, layout=None)
    assert warning.category is SuspectDataWarning
    assert warning.filename == __file__
    for word in ("fn.resize", str(shape), 'layout="CHW"', f"{shape[2]} channels"):
        assert word in str(warning.message)


def test_data_that_may_be_meant():
    def resized(x):
        return fn.resize(x, size=[8, 8])

    assert not told(resized, (20, 30, 3), layout=None)
    assert not told(resized, (3, 20, 3), layout=None)
    assert not told(resized, (3, 20, 30), layout="CHW")
    assert not told(resized, (3, 20, 30), layout="HWC")
    assert not told(lambda x: x + 1, (3, 20, 30), layout=None)


def test_dynamic_calls():
    image = ndd.tensor(np.ones((20, 30, 3), np.uint8), layout="HWC")
    call = functools.partial(ndd.crop_mirror_normalize, mean=MEAN, std=STD, dtype=ndd.float32)
    with pytest.warns(SuspectDataWarning, match="Multiply") as found:
        np.asarray(call(image))
    np.asarray(call(image))  # warnings are errors
    assert [warning.filename for warning in found] == [__file__]
