"""Functions in Python on the GPU: arrays of the array module, DLPack, streams, errors."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import numpy as np
import pytest

from headrace import Pipeline, fn, ops, types
from headrace.errors import OperatorError
from headrace.operators.python.python_function import PythonFunction
from headrace.python_function_plugin import current_dali_stream
from headrace.tensors import TensorGPU

SHAPES = ((5, 7, 3), (2, 4, 3), (3, 1, 3), (5, 7, 3))
IMAGES = [np.random.default_rng(k).integers(0, 256, s, np.uint8) for k, s in enumerate(SHAPES)]

pytestmark = pytest.mark.usefixtures("gpu_runtime")


def run(graph, runs=3, **options):
    pipe = Pipeline(len(IMAGES), 2, 0, prefetch_queue_depth=2, **options)
    with pipe:
        images = fn.external_source(source=lambda: IMAGES, layout="HWC")
        found = graph(images.gpu())
        pipe.set_outputs(*(found if isinstance(found, (tuple, list)) else (found,)))
    for _ in range(runs):
        outputs = pipe.run()
    return [batch.as_cpu() for batch in outputs], pipe


def check(batch, expected):
    for found, wanted in zip(batch, expected, strict=True):
        found = np.array(found)
        assert found.dtype == wanted.dtype
        np.testing.assert_array_equal(found, wanted)


def test_samples_batches_and_several_outputs():
    def graph(x):
        flipped, sums = fn.python_function(
            x,
            function=lambda a: (a[:, ::-1], a.sum(axis=(0, 1), dtype=np.int64)),
            num_outputs=2,
            output_layouts=["HWC"],
        )
        shuffled = fn.python_function(
            x, x, function=lambda a, b: [b[-1], *a[:-1]], batch_processing=True
        )
        same = fn.python_function(x, function=lambda a: a)
        return flipped, sums, shuffled, fn.flip(flipped), same, same.cpu()

    (flipped, sums, shuffled, back, same, on_cpu), _ = run(graph)
    check(flipped, [a[:, ::-1] for a in IMAGES])
    check(sums, [a.sum(axis=(0, 1), dtype=np.int64) for a in IMAGES])
    check(shuffled, [IMAGES[-1], *IMAGES[:-1]])
    check(back, IMAGES)
    check(same, IMAGES)
    check(on_cpu, IMAGES)
    assert [batch.layout() for batch in (flipped, sums, shuffled)] == ["HWC", "", ""]


@pytest.mark.gpu
@pytest.mark.parametrize("synchronize", [True, False])
def test_dl_tensors(synchronize):
    def double(capsule):
        tensor = TensorGPU(capsule)
        return tensor, tensor.__dlpack__()

    def graph(x):
        return fn.dl_tensor_python_function(
            x,
            function=double,
            num_outputs=2,
            batch_processing=False,
            output_layouts="HWC",
            synchronize_stream=synchronize,
        )

    outputs, _ = run(graph)
    for batch in outputs:
        check(batch, IMAGES)


def test_current_stream(monkeypatch):
    """Functions are told the stream that the operator's launches go to; nobody else is."""
    queues, told, elsewhere = [], [], []
    runs = PythonFunction.running
    monkeypatch.setattr(
        PythonFunction, "running", lambda op, queue: queues.append(queue.stream) or runs(op, queue)
    )

    def ask(a):
        told.append((current_dali_stream(), ops.PythonFunction.current_stream().ptr))
        with ThreadPoolExecutor(1) as pool:
            elsewhere.append(pool.submit(current_dali_stream).result())
        return a

    def graph(x):
        on_gpu = fn.python_function(x, function=ask)
        return on_gpu, fn.python_function(x.cpu(), function=lambda a: a + current_dali_stream())

    (_, on_cpu), _ = run(graph, runs=1)
    check(on_cpu, IMAGES)
    found = list(told)  # batches ahead are still being made
    assert len(found) >= len(IMAGES)
    assert set(found) <= {(stream, stream) for stream in queues}
    assert 0 not in queues
    assert set(elsewhere) == {0}
    with pytest.raises(OperatorError, match="three rows"):
        run(lambda x: fn.python_function(x, function=refuse))
    assert current_dali_stream() == 0
    assert isinstance(ops.PythonFunction.current_stream(), types.CUDAStream)
    assert ops.PythonFunction.current_stream().ptr == 0


def test_sinks_and_order():
    seen = []

    def graph(x):
        fn.python_function(x, function=lambda a: seen.append(int(a.shape[0])), num_outputs=0)
        return x

    _, pipe = run(graph)
    assert seen[:12] == [5, 2, 3, 5] * 3
    assert pipe.executor_statistics()["python_function_seconds"] > 0


def refuse(a):
    if a.shape[0] == 3:
        raise ValueError("three rows")
    return a


def test_errors():
    cases = (
        (
            refuse,
            ValueError,
            r"three rows[\s\S]*raised at \S*test_python_function.py:\d+ in refuse",
        ),
        (lambda a: None, TypeError, "returned None"),
        (lambda a: np.zeros(2).tolist(), TypeError, "`list` where an array of CuPy"),
        (lambda a: a if a.shape[0] < 5 else a[0], ValueError, "axes"),
        (
            lambda a: a.astype("u1" if a.shape[0] == 5 else "i2"),
            TypeError,
            "elements of type int16",
        ),
    )
    for function, kind, text in cases:
        with pytest.raises(kind, match=text) as raised:
            run(lambda x, f=function: fn.python_function(x, function=f))
        assert isinstance(raised.value, OperatorError)
        assert "fn.python_function" in str(raised.value)


def test_bad_samples_are_replaced():
    (found,), pipe = run(
        lambda x: fn.python_function(x, function=refuse), runs=1, on_bad_sample="replace"
    )
    check(found, [IMAGES[0], IMAGES[1], IMAGES[1], IMAGES[3]])
    assert {report.index for report in pipe.bad_samples} == {2}
