"""Functions in Python beside DALI's, on the CPU: values, types, shapes, layouts, errors."""

from __future__ import annotations

import importlib

import numpy as np
import nvidia.dali as dali
import pytest
from nvidia.dali import fn as dali_fn
from nvidia.dali import ops as dali_ops

import headrace
from headrace import fn, ops

LIBRARIES = {"dali": (dali, dali_fn, dali_ops), "headrace": (headrace, fn, ops)}
RNG = np.random.default_rng(0)
RAGGED = [RNG.integers(0, 100, shape, np.int32) for shape in ((2, 3), (4, 1), (1, 2))]
TYPES = [
    "uint8",
    "uint16",
    "uint32",
    "uint64",
    "int8",
    "int16",
    "int32",
    "int64",
    "float16",
    "float32",
    "float64",
    "bool",
]


def run(library, graph, *, data=RAGGED, runs=2, **options):
    """Samples, type and layout of each output of a graph of one edge, in the last iteration."""
    lib, functions, classes = LIBRARIES[library]

    @lib.pipeline_def(batch_size=len(data), num_threads=2, device_id=None, **options)
    def pipe():
        edge = functions.external_source(source=lambda: list(data), layout="HW"[: data[0].ndim])
        found = graph(edge, functions, classes)
        return tuple(found) if isinstance(found, (list, tuple)) else found

    made = pipe()
    made.build()
    for _ in range(runs):
        outputs = made.run()
    return [
        ([np.array(batch[k]) for k in range(len(batch))], int(batch.dtype), batch.layout())
        for batch in outputs
    ]


def compare(graph, **options):
    theirs, ours = (run(library, graph, **options) for library in LIBRARIES)
    assert len(theirs) == len(ours)
    for (expected, *kind), (found, *own_kind) in zip(theirs, ours, strict=True):
        assert own_kind == kind
        for a, b in zip(expected, found, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            np.testing.assert_array_equal(a, b)


def of(function, **options):
    return lambda x, fn, _ops: fn.python_function(x, function=function, **options)


def test_types():
    for name in TYPES:
        compare(of(lambda x, name=name: x.astype(name)))
        compare(of(lambda x: x * 1), data=[x.astype(name) for x in RAGGED])


def test_values_of_samples():
    for function in (
        lambda x: x,
        lambda x: x + 1,
        lambda x: x.T,
        lambda x: x[::-1, ::-1],
        lambda x: x[:0],
        lambda x: x[:, :1],
        lambda x: x.sum(keepdims=True),
        lambda x: np.array(x.sum()),
        lambda x: x[None, ..., None],
        lambda x: np.broadcast_to(x[:1], (3, *x.shape[1:])),
        lambda x: (x,),
        lambda x: np.ma.array(x, mask=x > 5),
        lambda x: np.add(x, 1, out=x),
        lambda x: np.frombuffer(b"text", np.uint8),
    ):
        compare(of(function))


def test_batches_inputs_and_outputs():
    compare(of(lambda xs: [x * k for k, x in enumerate(xs)], batch_processing=True))
    compare(of(lambda xs: xs[::-1], batch_processing=True))
    compare(
        of(lambda xs: ([x[0] for x in xs], xs), batch_processing=True, num_outputs=2),
    )
    compare(of(lambda x: (x * 2.0, x.T, np.array(3)), num_outputs=3))
    compare(lambda x, fn, _: fn.python_function(x, x + 1, x, function=lambda a, b, c: a * b - c))
    compare(lambda x, fn, _: fn.python_function(function=lambda: np.arange(3)))
    compare(
        lambda x, fn, _: fn.python_function(
            function=lambda: [np.ones(2)] * 3, batch_processing=True
        )
    )
    compare(lambda x, fn, _: fn.python_function(np.float32([1, 2]), 3, function=lambda a, b: a + b))
    compare(lambda x, fn, _: fn.python_function(x, function=lambda a: a, device="cpu") + 1)
    compare(lambda x, fn, _: fn.python_function(x, function=lambda a: a, preserve=True, name="f"))


def test_layouts():
    compare(of(lambda x: x))
    compare(of(lambda x: x, output_layouts="AB"))
    compare(of(lambda x: x, output_layouts=""))
    compare(of(lambda x: (x, x[0]), num_outputs=2, output_layouts=["AB"]))
    compare(of(lambda x: (x, x[0]), num_outputs=2, output_layouts=["AB", "C"]))
    compare(of(lambda x: (x, x), num_outputs=2, output_layouts="AB"))


def test_classes():
    compare(lambda x, _, ops: ops.PythonFunction(lambda a: a + 1)(x))
    compare(lambda x, _, ops: ops.PythonFunction(lambda a: (a, a), 2, "cpu", False)(x))
    compare(
        lambda x, _, ops: ops.PythonFunction(
            function=lambda a: a[::-1], batch_processing=True, output_layouts="AB"
        )(x, name="reversed")
    )
    compare(lambda x, _, ops: ops.DLTensorPythonFunction(lambda a: a)(x))
    compare(lambda x, _, ops: ops.DLTensorPythonFunction(lambda a: a, 1, "cpu", True, False)(x))


def test_dl_tensors():
    import torch
    import torch.utils.dlpack as dlpack

    one = torch.ones(3)

    def function(x):
        return dlpack.to_dlpack(dlpack.from_dlpack(x) * 2)

    def graph(called, **options):
        return lambda x, fn, _: fn.dl_tensor_python_function(x, function=called, **options)

    compare(graph(lambda xs: [function(x) for x in xs]))  # whole batches, unless told otherwise
    compare(graph(function, batch_processing=False))
    compare(graph(lambda x: (x, dlpack.to_dlpack(one)), num_outputs=2, batch_processing=False))
    compare(graph(lambda xs: xs[::-1], output_layouts="AB", synchronize_stream=False))


WRONG = (
    (lambda x: None, {}),
    (lambda x: 1, {}),
    (lambda x: np.float32(1), {}),
    (lambda x: [x], {}),
    (lambda x: [x, x], {"num_outputs": 2}),
    (lambda x: (x,), {"num_outputs": 2}),
    (lambda x: x, {"num_outputs": 2}),
    (lambda x: x.astype(np.int32 if len(x) == 2 else np.int64), {}),
    (lambda x: x if len(x) == 2 else x[0], {}),
    (lambda x: np.array("text"), {}),
    (lambda x: np.array([None]), {}),
    (lambda x: x.astype("datetime64[s]"), {}),
    (lambda x: np.zeros(2, [("a", "i4")]), {}),
    (lambda x: 1 // 0, {}),
    (lambda x: {}["missing"], {}),
    (lambda x: next(iter(())), {}),
    (lambda x, y: x, {}),
    (lambda x: x.no_such_thing, {}),
    (lambda xs: np.stack(xs), {"batch_processing": True}),
    (lambda xs: xs[:2], {"batch_processing": True}),
    (lambda xs: xs + xs, {"batch_processing": True}),
    (lambda xs: None, {"batch_processing": True}),
    (lambda xs: tuple(xs), {"batch_processing": True}),
    (lambda xs: [1 for _ in xs], {"batch_processing": True}),
    (lambda xs: [xs, xs], {"batch_processing": True, "num_outputs": 2}),
    (lambda x: (x, x), {"num_outputs": 2, "output_layouts": ["AB"] * 3}),
    (lambda x: x, {"output_layouts": 3}),
    (lambda x: (x, x), {"num_outputs": -1}),
    (3, {}),
)


def test_errors():
    """Each is a `RuntimeError`, as in DALI, and here of the class that tells what is wrong, too."""
    for function, options in WRONG:
        for library in LIBRARIES:
            with pytest.raises((RuntimeError, NotImplementedError)):
                run(library, of(function, **options))


def test_an_output_too_many_is_no_secret():
    """DALI drops it."""
    run("dali", of(lambda x: (x, x)))
    with pytest.raises(ValueError, match="got 2 in the tuple"):
        run("headrace", of(lambda x: (x, x)))


def test_errors_of_their_own():
    for library in LIBRARIES:
        with pytest.raises(ValueError, match="ABC"):
            run(library, of(lambda x: x, output_layouts="ABC"))
        with pytest.raises((TypeError, RuntimeError)):
            run(library, lambda x, fn, _: fn.python_function(x))
        with pytest.raises(RuntimeError):
            run(library, lambda x, fn, _: fn.dl_tensor_python_function(x, function=lambda x: [1]))


def test_calls_come_in_order_and_sinks_are_kept():
    for lib, functions, _classes in LIBRARIES.values():
        seen, unused = [], []

        @lib.pipeline_def(batch_size=3, num_threads=2, device_id=None, prefetch_queue_depth=2)
        def pipe(functions=functions, seen=seen, unused=unused):
            x = functions.external_source(
                source=lambda info: np.array(info.idx_in_epoch), batch=False
            )
            sink = functions.python_function(
                x, function=lambda a: seen.append(int(a)), num_outputs=0
            )
            assert sink == []
            functions.python_function(x, function=lambda a: (unused.append(int(a)), a)[1])
            return x

        made = pipe()
        made.build()
        for _ in range(3):
            made.run()
        assert seen[:9] == list(range(9))
        assert unused[:9] == list(range(9))


def test_the_stream_on_the_cpu():
    """There is none: its address is 0, inside of functions as outside."""
    for library, (lib, functions, classes) in LIBRARIES.items():
        plugin = importlib.import_module(f"{lib.__name__}.python_function_plugin")
        seen = []

        def ask(x, plugin=plugin, classes=classes, seen=seen):
            seen.append((plugin.current_dali_stream(), classes.PythonFunction.current_stream().ptr))
            return x

        @lib.pipeline_def(batch_size=1, num_threads=1, device_id=None)
        def pipe(functions=functions, ask=ask):
            return functions.python_function(np.zeros(2, np.float32), function=ask)

        made = pipe()
        made.build()
        made.run()
        ask(None)
        assert set(seen) == {(0, 0)}, library


def test_conditions():
    """Only the samples of a branch go through its function."""
    cases = ((1, [0, 1, 102, 103]), (9, [0, 1, 2, 3]), (-1, [100, 101, 102, 103]))
    for library, (lib, functions, _classes) in LIBRARIES.items():
        for limit, expected in cases:
            seen = []

            def note(x, seen=seen):
                seen.append(int(x))
                return np.asarray(x + 100)

            @lib.pipeline_def(batch_size=4, num_threads=2, device_id=None, enable_conditionals=True)
            def pipe(functions=functions, limit=limit, note=note):
                x = functions.external_source(
                    source=lambda info: np.array(info.idx_in_epoch % 4), batch=False
                )
                if x > limit:
                    y = functions.python_function(x, function=note)
                else:
                    y = x
                return y

            made = pipe()
            made.build()
            (found,) = made.run()
            assert np.ravel(found.as_array()).tolist() == expected, library
            assert seen[:4] == ([k for k in range(4) if k > limit] * 4)[: len(seen[:4])]
