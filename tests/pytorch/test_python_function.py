"""Functions of PyTorch's tensors in pipelines."""

from __future__ import annotations

import inspect

import numpy as np
import pytest
import torch

from headrace import fn, pipeline_def, types
from headrace.errors import OperatorError
from headrace.plugin import pytorch

SAMPLES = [np.arange(n * 2, dtype=np.int32).reshape(n, 2) for n in (2, 3, 1)]


def run(graph, samples=SAMPLES, runs=2):
    @pipeline_def(batch_size=len(samples), num_threads=2, device_id=None)
    def pipe():
        found = graph(fn.external_source(source=lambda: samples, layout="HW"))
        return tuple(found) if isinstance(found, list) else found

    made = pipe()
    for _ in range(runs):
        outputs = made.run()
    return [[np.array(sample) for sample in batch] for batch in outputs]


def call(function, **options):
    return lambda x: pytorch.fn.torch_python_function(x, function=function, **options)


def same(found, expected):
    assert [(a.dtype, a.tolist()) for a in found] == [(a.dtype, a.tolist()) for a in expected]


def test_samples_and_batches():
    cases = (
        (lambda x: x + 1, {}, lambda x: x + 1),
        (lambda x: x.T, {}, lambda x: x.T),
        (lambda x: x.add_(1), {}, lambda x: x + 1),
        (lambda x: x.sum(), {}, lambda x: x.sum(dtype=np.int64)),
        (lambda x: x.to(torch.float16), {}, lambda x: x.astype(np.float16)),
        (lambda x: x > 2, {}, lambda x: x > 2),
        (lambda xs: [x * 2 for x in xs], {"batch_processing": True}, lambda x: x * 2),
    )
    for function, options, expected in cases:
        (found,) = run(call(function, **options))
        same(found, [expected(x) for x in SAMPLES])


def test_several_outputs_inputs_and_none():
    seen = []

    def graph(x):
        assert pytorch.fn.torch_python_function(x, function=note, num_outputs=0) == []
        return pytorch.fn.torch_python_function(
            x, x * 2, function=lambda a, b: (a + b, b[:1]), num_outputs=2, output_layouts=["HW"]
        )

    def note(x):
        seen.append(x.shape)

    total, first = run(graph)
    same(total, [x * 3 for x in SAMPLES])
    same(first, [x[:1] * 2 for x in SAMPLES])
    assert seen[:3] == [(2, 2), (3, 2), (1, 2)]


def test_every_element_type():
    for kind, dtype in pytorch.to_torch_type.items():

        def check(x, dtype=dtype):
            assert x.dtype == dtype
            return x

        (found,) = run(
            lambda x, kind=kind, check=check: call(check)(fn.cast(x, dtype=kind)), runs=1
        )
        same(found, [x.astype(types.to_numpy_type(kind)) for x in SAMPLES])


def test_the_class_has_the_arguments_of_dali():
    double = pytorch.TorchPythonFunction(lambda x: (x, x * 2), 2, "cpu", False)
    one, two = run(double)
    same(one, SAMPLES)
    same(two, [x * 2 for x in SAMPLES])
    parameters = list(inspect.signature(pytorch.TorchPythonFunction).parameters)
    assert parameters[:4] == ["function", "num_outputs", "device", "batch_processing"]
    assert pytorch.TorchPythonFunction.__name__ == "TorchPythonFunction"
    assert pytorch.fn.torch_python_function.__module__ == "headrace.plugin.pytorch.fn"


def test_errors():
    cases = (
        (lambda x: x.numpy(), TypeError, "`ndarray` where a tensor of PyTorch is expected"),
        (lambda x: None, TypeError, "returned None"),
        (lambda x: torch.ones(2, requires_grad=True), RuntimeError, "requires grad"),
        (lambda x: x.to(torch.bfloat16), TypeError, "BFloat16"),
        (
            lambda x: x.missing,
            AttributeError,
            r"raised at \S*function.py:\d+ in <lambda>",
        ),
        (lambda x: (x, x), ValueError, "got 2 in the tuple"),
    )
    for function, kind, text in cases:
        with pytest.raises(kind, match=text) as raised:
            run(call(function))
        assert isinstance(raised.value, OperatorError)
        assert "in operator `torch_python_function`" in str(raised.value)
    with pytest.raises(TypeError, match=r"returned a Tensor for output 0; with .batch_processing."):
        run(call(lambda xs: xs[0], batch_processing=True))
