"""Names of DALI's private modules that programs use, beside DALI's own."""

from __future__ import annotations

import importlib
import tempfile
from collections.abc import Iterable
from types import ModuleType
from typing import Any

import numpy as np
import nvidia.dali.ops
import pytest
import torch

from tests.parity.outcomes import Library, Table, assert_same, attempt

SAMPLE = np.uint8([[42, 41], [40, 39]])
names = Table()


def found(lib: Library, module: str, name: str) -> Any:
    """A private name, by ``import`` of its module."""
    return getattr(importlib.import_module(f"{lib.module.__name__}.{module}"), name)


def returned(name: str, *values: Any) -> Any:
    """What a function for data that callbacks return makes of each of `values`."""

    def scenario(lib: Library) -> Any:
        function = found(lib, "_utils.external_source_impl", name)
        made = [value(lib) if callable(value) else value for value in values]
        return [attempt(function, each) for each in made]

    return scenario


SAMPLES = (
    SAMPLE,
    torch.tensor(SAMPLE),
    lambda lib: lib.TensorCPU(SAMPLE),
    *([SAMPLE], "text", 3, None),
)
BATCHES = (
    *([SAMPLE], [SAMPLE] * 4, [torch.tensor(SAMPLE)] * 2, SAMPLE),
    lambda lib: [lib.TensorCPU(SAMPLE)] * 2,
    lambda lib: lib.TensorListCPU(SAMPLE),
    *([SAMPLE, SAMPLE[:1]], ["text"], 3, "text"),
)
names(
    samples=returned("sample_to_numpy", *SAMPLES),
    samples_checked=returned("assert_cpu_sample_data_type", *SAMPLES),
    batches=returned("batch_to_numpy", *BATCHES),
    batches_checked=returned("assert_cpu_batch_data_type", *BATCHES),
    own_words=lambda lib: [
        str(attempt(found(lib, "_utils.external_source_impl", name), "text", "No: {}"))
        for name in ("sample_to_numpy", "batch_to_numpy", "assert_cpu_batch_data_type")
    ],
    types_by_their_compiled_name=lambda lib: (
        lib.types is not None
        and importlib.import_module(f"{lib.module.__name__}.backend_impl").types._DALIDataType.INT8
    ),
)


CLASS_NAMES = "Test OneTwo TestXYZ testX TestXx testXX OneXYZTwo MFCC RandomBBoxCrop STFT_CPU A"
CLASS_NAMES += " DOUBLE__UNDERSCORE double__underscore XYZ1ABC XYZ1abc trailing__ TRAILING__"
CLASS_NAMES += " Caffe2Reader COCOReader DLTensorPythonFunction TFRecordReader ROIRandomCrop RMS"


@names
def names_of_functions(lib: Library) -> Any:
    classes = [name for name in dir(nvidia.dali.ops) if name[:1].isupper()]
    return [lib.fn._to_snake_case(name) for name in (*CLASS_NAMES.split(), *classes)]


@names
def inputs_in_signatures(lib: Library) -> Any:
    def inputs(schema: str, api: str) -> Any:
        write = found(lib, "ops._signatures", "_call_signature")
        backend = importlib.import_module(f"{lib.module.__name__}.backend")
        given = write(backend.GetSchema(schema), api, include_kwargs=False).parameters.values()
        return [(each.name, each.kind.name) for each in given]

    schemas = ("WarpAffine", "Slice", "Reshape", "Reinterpret", "ExternalSource", "PythonFunction")
    return [
        found(lib, "ops._names", "_get_variadic_input_name")(),
        *(inputs(schema, api) for schema in schemas for api in ("fn", "ops")),
    ]


@names
def counts_of_arguments(lib: Library) -> Any:
    class Callback:
        def __call__(self, info: Any) -> Any:
            return info

    count = found(lib, "_utils.external_source_impl", "accepted_arg_count")
    return [int(count(each)) for each in (lambda: 1, lambda info: 1, Callback())]


@names
def written_definitions(lib: Library) -> Any:
    write = found(lib, "_utils.autoserialize", "invoke_autoserialize")
    mark = importlib.import_module(f"{lib.module.__name__}.plugin.triton").autoserialize
    settings = {"batch_size": 1, "num_threads": 1, "device_id": None}
    module = ModuleType("model")
    with tempfile.NamedTemporaryFile() as file:
        words = [str(attempt(write, module, file.name)).split(".")[0]]
        module.one = mark(lib.pipeline_def(lambda: np.int32(42), **settings))
        write(module, file.name)
        (out,) = lib.Pipeline.deserialize(filename=file.name).run()
        module.other = mark(lib.pipeline_def(lambda: np.int32(43), **settings))
        words.append(str(attempt(write, module, file.name)).split(".")[0])
    return out, words, str(attempt(mark, len))[:67]


@names
def not_iterable(lib: Library) -> Any:
    class Numbers:
        def __iter__(self) -> Any:
            return iter([1, 2])

    before = isinstance(Numbers(), Iterable)
    found(lib, "_utils.hacks", "not_iterable")(Numbers)
    return before, isinstance(Numbers(), Iterable), type(attempt(list, Numbers()))


@names
def rewritten_functions(lib: Library) -> Any:
    is_artifact = found(lib, "_autograph", "is_autograph_artifact")
    seen = []

    def factory(size: int) -> Any:
        def source(info: Any) -> Any:
            return np.full(size, max(info.idx_in_batch, 1))

        return source

    def define() -> Any:
        def local(info: Any) -> Any:
            return np.full(2, max(info.idx_in_batch, 1))

        made, kept = factory(3), lib.pipeline.do_not_convert(factory)(3)
        seen.extend([is_artifact(each) for each in (local, made, kept, None)])
        return lib.fn.external_source(source=made, batch=False), lib.fn.external_source(
            source=local, batch=False
        )

    pipe = lib.pipe(define, enable_conditionals=True)
    pipe.build()
    return seen, pipe.run()


@names
def invariants(lib: Library) -> Any:
    mark = importlib.import_module(f"{lib.module.__name__}.experimental.dynamic").capture.invariant
    is_invariant, one, inside = (
        found(lib, "experimental.dynamic.capture._invariant", name)
        for name in ("is_invariant", "unwrap_invariant", "unwrap_invariants")
    )
    values = (3, [3], None, "text", mark(3), mark([3]), mark(None), [mark(3)], {"a": (mark(3), 4)})
    kept = [3, (4, 5)]
    return (
        [is_invariant(each) for each in values],
        [type(one(each)).__name__ for each in values],
        [repr(inside(each)) for each in values],
        [type(inside(each)).__name__ for each in values],
        inside(kept) is kept,
    )


def test_batches_of_captured_loops(tmp_path):
    for k in range(12):
        np.save(tmp_path / f"{k:02d}.npy", np.full((4, 5, 3), k, np.uint8))
    told = {}
    for name in ("headrace", "nvidia.dali"):
        ndd = importlib.import_module(f"{name}.experimental.dynamic")
        captured = importlib.import_module(f"{name}.experimental.dynamic._capture").CapturedBatch
        reader = ndd.readers.Numpy(file_root=str(tmp_path))
        assert reader._op_backend is None
        seen = told[name] = []
        before = ndd.batch([np.zeros((4, 5, 3), np.uint8)] * 2)
        for (data,) in reader.next_epoch(batch_size=2, capture=True):
            made = ndd.flip(data, horizontal=1)
            seen.append([isinstance(x, captured) for x in (data, made, before, 3)])
            np.asarray(made.cpu().tensors[0])
        reader = ndd.readers.Numpy(file_root=str(tmp_path))
        next(iter(reader.next_epoch(batch_size=2)))
        seen.append(reader._op_backend.GetReaderMeta()["epoch_size"])
    assert told["headrace"] == told["nvidia.dali"]


@pytest.mark.parametrize("name", names)
def test_private_name(name):
    assert_same(names[name])
