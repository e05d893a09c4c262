"""Every operator gives in dynamic mode, in all of its modes, what it gives in a pipeline."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import fn, types
from headrace.experimental.dynamic import evaluators
from headrace.experimental.dynamic.functions import is_offered
from headrace.operators.support.manifest import OPERATORS
from headrace.operators.support.registry import all_schemas, find
from headrace.pipeline import Pipeline
from tests.cases.table import CASES

MODES = list(ndd.EvalMode)


@pytest.fixture(autouse=True)
def _own_folder(tmp_path, monkeypatch):
    """`dump_image` writes into the current one."""
    monkeypatch.chdir(tmp_path)


def member(root, name):
    for part in name.split("."):
        root = getattr(root, part)
    return root


def returning(batch):
    return lambda: batch


def in_pipeline(case, size=None):
    size = case.size if size is None else size
    pipe = Pipeline(batch_size=size, num_threads=2, device_id=None, seed=5)
    with pipe:
        nodes = [
            fn.external_source(returning(samples[:size]), layout=layout or None)
            for samples, layout in case.inputs
        ]
        tensors = {
            name: fn.external_source(returning([as_array(x) for x in values[:size]]))
            for name, values in case.tensors.items()
        }
        result = member(fn, case.name)(*nodes, **case.constants(types), **tensors)
        outputs = result if isinstance(result, (list, tuple)) else [result]
        pipe.set_outputs(*outputs)
    pipe.build()
    return [([np.array(o.at(i)) for i in range(len(o))], o.layout(), o.dtype) for o in pipe.run()]


def as_array(value):
    array = np.array(value)
    return array.astype({"f": np.float32, "i": np.int32}[array.dtype.kind])


def dynamic_call(case, dynamic=ndd, kinds=types):
    inputs = [dynamic.batch(list(s), layout=layout or None) for s, layout in case.inputs]
    tensors = {
        name: dynamic.batch([as_array(v) for v in values]) for name, values in case.tensors.items()
    }
    args = case.constants(kinds)
    extra = {} if case.inputs else {"batch_size": case.size}
    result = member(dynamic, case.name)(*inputs, **args, **tensors, **extra)
    return list(result) if isinstance(result, tuple) else [result]


def check(got, want):
    assert len(got) == len(want)
    for batch, (samples, layout, dtype) in zip(got, want, strict=True):
        assert batch.dtype.type_id == dtype
        assert (batch.layout or "") == layout
        assert batch.shape == [s.shape for s in samples]
        for tensor, sample in zip(batch.tensors, samples, strict=True):
            assert np.asarray(tensor).tobytes() == np.ascontiguousarray(sample).tobytes()


@pytest.mark.parametrize("case", CASES, ids=str)
def test_batches_in_every_mode_are_what_a_pipeline_gives(case):
    want = in_pipeline(case)
    for mode in MODES:
        with mode:
            check(dynamic_call(case), want)


@pytest.mark.parametrize("case", [c for c in CASES if c.inputs], ids=str)
def test_single_tensors_in_every_mode_are_what_a_pipeline_gives(case):
    want = in_pipeline(case, 1)
    for mode in [*MODES, ndd.EvalMode.eager]:
        with mode:
            inputs = [ndd.tensor(s[0], layout=layout or None) for s, layout in case.inputs]
            tensors = {name: ndd.tensor(as_array(v[0])) for name, v in case.tensors.items()}
            result = member(ndd, case.name)(*inputs, **case.constants(types), **tensors)
            results = list(result) if isinstance(result, tuple) else [result]
            for tensor, (samples, layout, dtype) in zip(results, want, strict=True):
                assert isinstance(tensor, ndd.Tensor)
                assert tensor.dtype.type_id == dtype
                assert (tensor.layout or "") == layout
                assert np.asarray(tensor).tobytes() == samples[0].tobytes()
                assert tensor.shape == samples[0].shape


def test_what_reduces_its_batch_needs_no_program_for_a_single_tensor(monkeypatch):
    image = np.arange(30, dtype=np.uint8).reshape(5, 2, 3)
    calls = [
        lambda data: ndd.pad(data, fill_value=7),
        lambda data: ndd.pad(data, axes=(0, 1), shape=(6, -1), align=4),
        lambda data: ndd.normalize(data, batch=True),
        lambda data: ndd.one_hot(data, num_classes=30),  # which works on chunks
    ]
    with ndd.EvalMode.sync_cpu:
        expected = [np.asarray(call(ndd.as_batch([image])).tensors[0]) for call in calls]
        monkeypatch.setattr(evaluators, "run_chain", None)
        for call, wanted in zip(calls, expected, strict=True):
            np.testing.assert_array_equal(np.asarray(call(ndd.as_tensor(image))), wanted)


def test_every_operator_has_a_case():
    offered = {s.name for s in all_schemas() if is_offered(s) and not s.hidden and not s.random}
    offered &= OPERATORS.keys()  # others are declared by tests
    offered.discard("decoders.video")  # tests/dynamic/test_video.py has it, where there is PyAV
    offered -= {"decoders.text", "decoders.json"}  # tests/core/pipeline/test_side_data.py has them
    assert not offered - {c.name for c in CASES}


def test_function_has_signature_and_documentation():
    names = OPERATORS.keys() - {s.name for s in all_schemas() if s.hidden or not is_offered(s)}
    for name in sorted(names):
        import inspect

        function = member(ndd, name)
        parameters = inspect.signature(function).parameters
        assert {"batch_size", "device"} <= set(parameters), name
        assert ("rng" in parameters) == find(name).random, name
        assert not {"seed", "preserve", "bytes_per_sample_hint", "name"} & set(parameters), name
        assert "batch_size" in function.__doc__, name
        assert "DataNode" not in function.__doc__, name
        assert function.__name__ == name.rpartition(".")[2]


def test_the_module_lists_what_is_public():
    names = set(dir(ndd))
    assert {"Tensor", "resize", "decoders", "random", "math", "int32", "imread"} <= names
    assert not {"slots", "chains", "calling", "tensors", "external_source", "constant"} & names
    assert not [name for name in names if not hasattr(ndd, name)]
