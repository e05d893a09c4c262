"""Details of the interface that programs written for DALI rely on, beside DALI itself."""

from __future__ import annotations

import importlib
import json
import subprocess
import sys

import numpy as np
import nvidia.dali
import nvidia.dali.types as dali_types
import pytest

import headrace
import headrace.backend
from headrace import Pipeline, fn, types
from headrace.tensors.gpu.runtime import is_available
from tests.parity.outcomes import Table, assert_differs, assert_same, attempt
from tests.support import own

details = Table()


def counting(lib):
    """A pipeline whose batches are numbered from 1."""
    batches = iter(range(1, 9))
    return lib.pipe(
        lambda: lib.fn.external_source(source=lambda: np.full((2, 1), next(batches), np.int32))
    )


def defined(lib, *outputs):
    """A pipeline that was given `outputs`, which nobody has looked at yet."""
    pipe = lib.Pipeline(2, 1, None)
    with pipe:
        pipe.set_outputs(*[o(lib) if callable(o) else o for o in outputs])
    return pipe


def stages(lib, *outputs):
    """Whether outputs can be set, and what the build says to them."""
    pipe = defined(lib, *outputs)
    return attempt(pipe.build)


details(
    # What is wrong with outputs shows when the pipeline is built.
    text_as_an_output=lambda lib: stages(lib, "text"),
    dictionary_as_an_output=lambda lib: stages(lib, {"a": 1}),
    none_as_an_output=lambda lib: stages(lib, None),
    node_in_a_list=lambda lib: stages(lib, lambda lib: [lib.fn.random.uniform()]),
    no_outputs=lambda lib: stages(lib),
    numbers_as_outputs=lambda lib: stages(lib, 3, [1, 2]),
    definition_that_returns_a_list=lambda lib: attempt(
        lib.pipe(lambda: [lib.fn.random.uniform()]).build
    ),
    definition_that_returns_nothing=lambda lib: attempt(lib.pipe(lambda: None).build),
    # Keyword arguments without a name are refused by the call, not by the decorator.
    variadic_definition=lambda lib: lib.pipeline_def(lambda **given: 1) and None,
    variadic_definition_called=lambda lib: lib.pipe(lambda **given: 1),
    # `release_outputs` belongs to `schedule_run`.
    released_after_run=lambda lib: (pipe := counting(lib), pipe.run(), pipe.release_outputs()),
    run_after_release=lambda lib: (pipe := counting(lib), pipe.release_outputs(), pipe.run()),
    filled_from_the_first=lambda lib: lib.pipe(
        lambda: (
            lib.fn.full(np.array([4, 5, 6], np.int32)),
            lib.fn.full(np.array([[4, 5]], np.int16), shape=[]),
            lib.fn.full(np.array([4, 5, 6], np.float32), shape=[2, 3]),
            lib.fn.full_like(np.zeros((2, 3), np.int16), np.array([[1.4], [2.5]], np.float32)),
        )
    ).run(),
    filled_with_too_many=lambda lib: lib.pipe(
        lambda: lib.fn.full_like(np.zeros((2, 2)), np.array([1, 2, 3], np.int32))
    ).run(),
    dtype_as_a_method=lambda lib: [
        lib.TensorCPU(np.zeros(2, dtype)).dtype()
        for dtype in (np.uint8, np.int64, np.float16, np.float32, np.float64, np.bool_, np.uint64)
    ],
    dtype_equals_a_type=lambda lib: (
        lib.TensorCPU(np.zeros(2, np.int16)).dtype == lib.types.INT16,
        lib.TensorListCPU(np.zeros(2, np.int16)).dtype == lib.types.INT16,
    ),
)


def enumerations(lib, graph):
    """Type and shapes of the outputs of `graph`, and whether they can be read."""
    outputs = lib.pipe(lambda: graph(lib.fn, lib.types), batch_size=3).run()
    return [(str(o.dtype), o.shape(), attempt(lambda o=o: np.asarray(o[0]))) for o in outputs]


details(
    chosen_members=lambda lib: enumerations(
        lib,
        lambda fn, t: (
            fn.random.choice([t.INTERP_NN, t.INTERP_NN]),
            fn.random.choice([t.INT8, t.INT8], shape=[2]),
            fn.random.choice(fn.copy([t.RGB, t.RGB])),
        ),
    ),
    members_that_are_handed_on=lambda lib: enumerations(
        lib,
        lambda fn, t: (
            fn.copy(t.INTERP_CUBIC),
            fn.copy([t.FLOAT, t.INT8])[1],
            fn.reshape([t.RGB, t.BGR], shape=[2, 1]),
            fn.reinterpret([t.RGB, t.BGR], dtype=t.INT32),
            fn.cast([t.INTERP_NN, t.INTERP_CUBIC], dtype=t.INT32),
        ),
    ),
    chosen_interpolation=lambda lib: lib.pipe(
        lambda: lib.fn.resize(
            np.arange(16, dtype=np.uint8).reshape(4, 4, 1),
            size=[2, 2],
            interp_type=lib.fn.random.choice([lib.types.INTERP_NN, lib.types.INTERP_NN]),
        )
    ).run(),
    mixed_enumerations=lambda lib: lib.pipe(
        lambda: lib.fn.random.choice([lib.types.INTERP_NN, lib.types.RGB])
    ),
    calculating_with_members=lambda lib: lib.pipe(lambda: lib.fn.copy(lib.types.BGR) + 1).run(),
)


@pytest.mark.filterwarnings("ignore:Calling")
@pytest.mark.parametrize("name", details)
def test_same_as_dali(name):
    assert_same(details[name])


@pytest.mark.skipif(is_available(), reason="there is a GPU")
def test_a_gpu_is_missed_by_the_build():
    def pipe(lib):
        return defined(lib, lambda lib: lib.fn.random.uniform().gpu())

    assert_same(lambda lib: pipe(lib) and None)
    assert_same(lambda lib: pipe(lib).build())


def test_members_of_dalis_enumerations():
    image = np.arange(16, dtype=np.uint8).reshape(4, 4, 1)
    pipe = Pipeline(1, 1, None, output_dtype=[None, None, dali_types.INT16])
    with pipe:
        x = fn.external_source(lambda: [image], layout="HWC", dtype=dali_types.UINT8)
        resized = [
            fn.resize(x, size=[2, 2], interp_type=interp)
            for interp in (types.INTERP_CUBIC, dali_types.INTERP_CUBIC)
        ]
        pipe.set_outputs(*resized, fn.cast(x, dtype=dali_types.INT16))
    ours, theirs, cast = pipe.run()
    np.testing.assert_array_equal(ours.as_array(), theirs.as_array())
    assert cast.dtype == types.INT16
    assert types.Constant(3, dtype=dali_types.FLOAT64).dtype is types.FLOAT64
    with pytest.raises(TypeError, match="interp_type"):
        fn.resize(x, size=[2, 2], interp_type=dali_types.RGB)


def test_filling_with_what_does_not_fit():
    theirs = [("batch", "", [("int32", (2,), [5, 5])] * 2)]
    assert_differs(
        lambda lib: list(
            lib.pipe(lambda: lib.fn.full(np.array([[5], [3]], np.int32), shape=[2])).run()
        ),
        theirs,
        ValueError,
    )


WITHOUT_A_GPU = Table(
    devices=lambda lib: (
        lib.backend.GetCUDADeviceCount(),
        lib.backend.IsDriverInitialized(),
        lib.backend.GetCudaVersion(),
        lib.backend.RestrictPinnedMemUsage(),
    ),
    check=lambda lib: lib.backend.check_cuda_runtime(),
    current_device=lambda lib: lib.backend.GetCUDACurrentDevice(),
    setting_a_device=lambda lib: lib.backend.SetCUDACurrentDevice(0),
    synchronizing=lambda lib: lib.backend.CUDAStreamSynchronize(0),
    device_memory=lambda lib: lib.backend.PreallocateDeviceMemory(10, 0),
    pinned_memory=lambda lib: lib.backend.PreallocatePinnedMemory(10),
)


@pytest.mark.skipif(is_available(), reason="there is a GPU")
@pytest.mark.parametrize("name", WITHOUT_A_GPU)
def test_backend_without_a_gpu(name):
    assert_same(WITHOUT_A_GPU[name])


BACKEND = Table(
    capsules=lambda lib: [
        lib.backend.CheckDLPackCapsule(x) for x in (3, None, np.zeros(3).__dlpack__(), np.zeros(3))
    ],
    versions=lambda lib: (lib.backend.GetOpenCVVersion(), lib.backend.GetNvimgcodecVersion()),
    factors=lambda lib: (
        lib.backend.SetBufferGrowthFactor(2),
        lib.backend.SetDeviceBufferGrowthFactor(1.5),
        lib.backend.SetHostBufferShrinkThreshold(0.25),
        lib.backend.GetHostBufferGrowthFactor(),
        lib.backend.GetDeviceBufferGrowthFactor(),
        lib.backend.GetHostBufferShrinkThreshold(),
        attempt(lib.backend.SetHostBufferGrowthFactor, 5),
        attempt(lib.backend.SetHostBufferShrinkThreshold, 1.5),
        lib.backend.SetBufferGrowthFactor(1.1),
        lib.backend.SetHostBufferShrinkThreshold(0.5),
    ),
    libraries=lambda lib: (
        attempt(lib.backend.LoadLibrary, "/nowhere/lib.so"),
        lib.backend.LoadLibrary("/nowhere/lib.so", allow_fail=True),
        lib.backend.LoadDirectory("/nowhere"),
        lib.backend.LoadDefaultPlugins(),
    ),
    unknown_schema=lambda lib: lib.backend.GetSchema("Nonsense"),
    schema_of_a_function=lambda lib: lib.backend.TryGetSchema("resize"),
)
PLAIN = (
    "Name",
    "OperatorName",
    "ModulePath",
    "MinNumInput",
    "MaxNumInput",
    "GetArgumentNames",
    "GetSupportedBackends",
    "IsDeprecated",
    "IsDocHidden",
    "IsDocPartiallyHidden",
    "IsInternal",
    "IsStateful",
    "HasRandomSeedArg",
)
PLACED = [("Slice", 0), ("Slice", 1), ("Shapes", 0), ("Copy", 0), ("decoders__Image", 0)]
OF_AN_ARGUMENT = (
    "HasArgument",
    "IsArgumentOptional",
    "IsTensorArgument",
    "ArgSupportsPerFrameInput",
    "IsDeprecatedArg",
    "GetArgumentType",
    "HasArgumentDefaultValue",
    "GetArgumentDefaultValueString",
)


def schema(lib, name, *arguments):
    """What the schema of an operator says, about itself and about arguments."""
    found = lib.backend.GetSchema(name)
    plain = [getattr(found, method)() for method in PLAIN]
    plain = [[e for e in p if e not in own.ARGUMENTS] if type(p) is list else p for p in plain]
    rows = [attempt(getattr(found, m), a) for a in arguments for m in OF_AN_ARGUMENT]
    return plain, rows


BACKEND(
    schema_of_resize=lambda lib: schema(
        lib, "Resize", "size", "max_size", "antialias", "image_type", "nonsense"
    ),
    schema_of_a_reader=lambda lib: schema(lib, "readers__File", "files", "num_shards", "labels"),
    schema_of_random_numbers=lambda lib: schema(lib, "random__CoinFlip", "probability", "shape"),
    schema_of_a_rotation=lambda lib: schema(lib, "Rotate", "angle", "fill_value", "keep_size"),
    schema_of_reshape=lambda lib: schema(lib, "Reshape", "shape", "layout", "src_dims"),
    first_input_of_reshape=lambda lib: lib.backend.GetSchema("Reshape").GetInputName(0),
    places_of_inputs=lambda lib: [
        lib.backend.GetSchema(name).GetInputDevice(index, there, runs)
        for name, index in PLACED
        for there in (None, "cpu", "gpu")
        for runs in (None, "cpu", "gpu", "mixed")
    ],
    schemas_of_functions=lambda lib: [
        (found._schema_name, lib.backend.GetSchema(found._schema_name).Name())
        for found in (lib.fn.resize, lib.fn.readers.file, lib.fn.external_source)
    ],
    functions_of_schemas=lambda lib: [
        *map(lib.ops._op_name, ("Resize", "readers__TFRecord", "_Shape")),
        attempt(lib.ops._op_name, "Nonsense") and None,
    ],
)


@pytest.mark.parametrize("name", BACKEND)
def test_backend(name):
    assert_same(BACKEND[name])


def test_names_that_programs_know():
    def scenario(lib):
        plugin = importlib.import_module(f"{lib.module.__name__}.python_function_plugin")
        pickling = importlib.import_module(f"{lib.module.__name__}.pickling")._DaliPickle
        values = np.arange(0, 10, 0.5).reshape(2, 10, 1)[:, 2:5]
        there = lib.ops._dlpack_to_array(lib.ops._dlpack_from_array(values))
        made = pickling.loads(pickling.dumps(lambda x: x + 1))
        return (
            there,
            plugin.DLTensorToArray(plugin.ArrayToDLTensor(values)),
            isinstance(lib.fn.random.uniform(), lib.ops._DataNode),
            [(t.name, lib.types.to_numpy_type(t).__name__) for t in lib.types._all_types],
            made(1),
        )

    assert_same(scenario)
    from_read_only = headrace.ops._dlpack_from_array(np.broadcast_to(np.int8(3), (2,)))
    assert headrace.ops._dlpack_to_array(from_read_only).tolist() == [3, 3]
    for wrong in ([1.0], np.array(["text"])):
        with pytest.raises(TypeError, match=r"NumPy|DLPack"):
            headrace.ops._dlpack_from_array(wrong)


def test_lambdas_of_one_line():
    # fmt: off
    first, second = (lambda lib, x: x + 1), (lambda x: x or x)
    # fmt: on
    truths = fn.external_source(lambda: [np.array(True), np.array(False)])
    pipe = headrace.pipeline_def(second, enable_conditionals=True)(
        truths, batch_size=2, num_threads=1, device_id=None
    )
    assert pipe.run()[0].as_array().tolist() == [True, False]
    assert first(None, 1) == 2


LISTS = """
import json, sys, importlib
backend = importlib.import_module(sys.argv[1] + ".backend")
print(json.dumps([getattr(backend, f"Registered{d}Ops")() for d in ("CPU", "GPU", "Mixed")]))
"""


def test_lists_of_operators():
    # In processes of their own: tests of this one have declared operators, too.
    listed = [
        json.loads(subprocess.check_output([sys.executable, "-c", LISTS, library], text=True))
        for library in ("nvidia.dali", "headrace")
    ]
    known = {name for theirs in listed[0] for name in theirs}
    for theirs, ours in zip(*listed, strict=True):
        theirs, ours = set(theirs), {n for n in ours if not n.startswith("_")}
        # Functions of the user, and TFRecord files, are named by what implements them there;
        # some operators run on the CPU, too, here only.
        more = ours - theirs - known - set(map(own.schema_name, own.OPERATORS))
        assert all(n.endswith("PythonFunction") or "TFRecord" in n for n in more), more
        assert len(ours & theirs) > 3
    assert headrace.__cuda_version__ == headrace.backend.__cuda_version__
    assert isinstance(headrace.__git_sha__, type(nvidia.dali.__git_sha__))
