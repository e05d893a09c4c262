"""Every public name of DALI is in Headrace, or in a list of those that are not; and private ones.

Private names are those that programs and DALI's own tests are known to use.
"""

from __future__ import annotations

import importlib
import inspect
import operator
import types
from collections.abc import Iterator
from functools import partial
from importlib.util import find_spec
from typing import Any

import numpy as np
import pytest

from headrace.errors import OperatorNotReleasedError
from tests.parity.outcomes import Library, Table, assert_same, attempt
from tests.parity.test_modules import public_modules
from tests.support import own
from tests.support.torchvision_beside_cpu import import_torchvision

_ENGINE = "DALI's own engine and what describes it: programs for pipelines never make one"
_SCHEMA = "asks about a specification of DALI's engine, or for the text of DALI's documentation"
_INSIDE = "how DALI does it inside"
_MEMBER = "members of enumerations have it, as Python's own"
ABSENT = {
    "backend_impl": {
        _ENGINE: "ExternalContextCheckpoint Init OpSpec Pipeline PipelineDebug SharedMem Stream",
        "flags of the compiler, and a question to CUDA": "GetCxx11AbiFlag GetCUDAStreamDevice",
    },
    "backend_impl.OpSchema": {
        _SCHEMA: """
            AliasFor AllowsSequences AppendKwargsSection CalculateAdditionalOutputs
            CalculateOutputDType CalculateOutputLayout CalculateOutputNDim CalculateOutputs
            CanUseAutoInputDox CheckArgs DeprecatedArgInfo DeprecatedInVersion DeprecationMessage
            GetCallDox GetCallSignatureInputs GetInputType HasCallDox HasInputDox HasOutputFn
            IsAbstract IsNoPrune IsSequenceOperator SupportsInPlace SupportsVolumetric""",
    },
    "backend": {_INSIDE: "cuda_checked deprecation_warning initialized"},
    "backend_impl.DLDeviceType": {_MEMBER: "name value"},
    "types": {_INSIDE: "dali_type_converters"},
    "experimental.dynamic.EvalContext": {_INSIDE: "cache_results cached_results"},
    "ops.PythonFunction": {
        _INSIDE: "check_outputs function_wrapper_batch function_wrapper_per_sample"
    },
    "plugin.jax.iterator": {_INSIDE: "data_iterator default_num_threads_value"},
    "plugin.numba": {_INSIDE: "address_as_void_pointer minimal_numba_version"},
    "plugin.pytorch.TorchPythonFunction": {_INSIDE: "torch_wrapper"},
    "plugin.pytorch.experimental.proxy.DataLoader": {_INSIDE: "ensure_server_listening"},
    "python_function_plugin": {_INSIDE: "DLTensorObj"},
}
"""Names that Headrace has not on purpose, by module or class, and why."""
OF_EACH_CLASS = "spec"
"""An operator's instance has DALI's specification of it in this attribute: `_ENGINE`."""


def test_every_name():
    found: dict[str, set[str]] = {}
    for where, name in missing_names():
        # Its transforms are torchvision's here; how DALI's check their arguments is their own.
        if not where.startswith("experimental.torchvision."):
            found.setdefault(where, set()).add(name)
    assert found == {
        where: {name for names in reasons.values() for name in names.split()}
        for where, reasons in ABSENT.items()
    }


def missing_names() -> Iterator[tuple[str, str]]:
    """What Headrace has not and does not call "to come": the module or class, and the name."""
    import_torchvision()
    for module in public_modules():
        try:
            theirs = importlib.import_module(f"nvidia.dali.{module}")
            ours = importlib.import_module(f"headrace.{module}")
        except ImportError:
            continue  # tests/parity/test_modules.py looks after modules
        for name, value in defined_in(theirs):
            try:
                counterpart = getattr(ours, name)
            except OperatorNotReleasedError:
                continue
            except AttributeError:
                yield module, name
                continue
            if inspect.isclass(value) and value.__module__.startswith("nvidia.dali"):
                known = {*dir(counterpart), OF_EACH_CLASS}
                for attribute in sorted({*dir(value)} - known):
                    if not attribute.startswith("_"):
                        yield f"{module}.{name}", attribute


def defined_in(module: types.ModuleType) -> Iterator[tuple[str, Any]]:
    """Public names that a module of DALI's is there for, not those it imports for itself."""
    listed = getattr(module, "__all__", ())
    for name, value in sorted(vars(module).items()):
        home = str(getattr(value, "__module__", None) or module.__name__)
        own = home == module.__name__ or home.startswith(f"{module.__name__}._")
        own |= home.endswith(".hidden")
        if not name.startswith("_") and not inspect.ismodule(value) and (own or name in listed):
            yield name, value


private = Table()


def class_of(lib: Library, name: str) -> Any:
    function = importlib.import_module(f"{lib.module.__name__}.experimental.dynamic")
    for part in name.split("."):
        function = getattr(function, part)
    return function._op_class


FLAGS = ("_schema_name", "_fn_name", "_fn_path", "_op_name", "_op_path", "_is_reader")
FLAGS += ("_is_stateful", "_has_random_state_arg", "_supported_backends", "_generated")


@private
def classes_of_dynamic_functions(lib: Library) -> Any:
    names = ("flip", "random.uniform", "decoders.image", "transforms.rotation", "noise.shot")
    return [
        {
            flag: sorted(value) if isinstance(value, frozenset) else value
            for flag in FLAGS
            for value in [getattr(class_of(lib, name), flag)]
        }
        for name in names
    ]


def dynamic(lib: Library, module: str = "") -> Any:
    return importlib.import_module(f"{lib.module.__name__}.experimental.dynamic{module}")


ELSEWHERE = {"_JaxFunction", "_conditional__Split", *own.INTERNAL}
"""Operators of a plugin's, our own, and one that is no operator here but what a branch reads."""
private(
    class_of_a_dynamic_function_is_the_class=lambda lib: (
        dynamic(lib).flip._op_class is dynamic(lib)._ops.Flip,
        dynamic(lib).random.normal._op_class is dynamic(lib)._ops.random.Normal,
        dynamic(lib).transforms.scale._op_class is dynamic(lib)._ops.transforms.Scale,
    ),
    private_modules_of_dynamic_mode=lambda lib: (
        dynamic(lib, "._batch").Batch is dynamic(lib).Batch,
        dynamic(lib, "._batch").as_batch is dynamic(lib).as_batch,
        dynamic(lib)._tensor.Tensor is dynamic(lib).Tensor,
        dynamic(lib)._type.int8 is dynamic(lib).int8,
        dynamic(lib)._eval_mode.EvalMode is dynamic(lib).EvalMode,
        hasattr(dynamic(lib)._device, "device"),
    ),
    generated=lambda lib: [
        made._generated
        for made in (lib.fn.flip, lib.ops.Flip, dynamic(lib).flip, dynamic(lib)._ops.Flip)
    ],
    types_below_the_compiled_module=lambda lib: (
        importlib.import_module(f"{lib.module.__name__}.backend_impl.types").DALIDataType.INT8
        == lib.types.INT8,
        importlib.import_module(f"{lib.module.__name__}.backend_impl.tfrecord").string
        is importlib.import_module(f"{lib.module.__name__}.tfrecord").string,
    ),
    version_of_cuda=lambda lib: (
        type(lib.backend.__cuda_version__),
        lib.backend.__cuda_version__ == lib.module.__cuda_version__,
        # Programs leave out what needs a later CUDA, on machines without a GPU too.
        lib.backend.__cuda_version__ >= (12000 if find_spec("cupy") or lib.name == "dali" else 0),
    ),
    modules_that_come_with_the_package=lambda lib: (
        callable(lib.module.pickling.pickle_by_value),
        callable(lib.module.python_function_plugin.current_dali_stream),
    ),
    lists_of_operators=lambda lib: [
        {"Flip", "readers__File", "decoders__Image"} & found
        for found in (lib.ops.cpu_ops(), lib.ops.gpu_ops(), lib.ops.mixed_ops())
    ],
    internal_operators=lambda lib: [
        [{n for n in found if n[0] == "_" and n not in ELSEWHERE} for found in ask()]
        for ask in (
            lambda: [lib.backend.RegisteredCPUOps(), lib.ops.cpu_ops(), lib.ops.mixed_ops()],
            lambda: [lib.backend.RegisteredMixedOps(internal_ops=False)],
        )
    ],
    internal_operators_asked_for=lambda lib: all(
        {*listed()} < {*listed(internal_ops=True)}
        for listed in (lib.backend.RegisteredCPUOps, lib.backend.RegisteredGPUOps)
    ),
    arguments_by_name=lambda lib: (
        lib.backend.GetSchema("Resize").IsArgumentOptional(arg_name="size"),
        dynamic(lib).batch([[1], [2], [3]]).select(sample_range=1).item(),
        dynamic(lib).DType.from_fw_type(numpy_type=np.uint8).name,
    ),
    names_of_schemas=lambda lib: (lib.ops.Flip.schema_name, lib.ops.readers.File().schema_name),
    class_from_a_schema=lambda lib: (
        (made := lib.ops.python_op_factory("Mirror", "Flip")).__name__,
        made.schema_name,
        made._generated,
        lib.pipe(lambda: made(device="cpu")(np.uint8([[[1], [2]]]))).run(),
    ),
    class_from_two_schemas=lambda lib: (
        (made := lib.ops.python_op_factory("Mirror", "Flip", "Flip", generated=False)).schema_name,
        made._generated,
    ),
    class_from_no_schema=lambda lib: lib.ops.python_op_factory("Mirror", "Mirror"),
    schema_and_target=lambda lib: [
        schema.Name() for schema in lib.backend.GetSchemaAndTarget("readers__File")
    ],
)


SETTINGS = (
    *("_max_batch_size", "_num_threads", "_device_id", "_seed", "_exec_pipelined", "_exec_async"),
    *("_exec_dynamic", "_exec_separated", "_prefetch_queue_depth", "_cpu_queue_size"),
    *("_gpu_queue_size", "_set_affinity", "_enable_memory_stats", "_enable_checkpointing"),
    *("_py_num_workers", "_py_start_method", "_py_callback_pickler", "_stream_policy"),
    *("_concurrency", "_bytes_per_sample"),
)


@private
def settings_of_a_derived_pipeline(lib: Library) -> Any:
    class Derived(lib.Pipeline):  # type: ignore[name-defined, misc]
        def __init__(self) -> None:
            self._mine = hasattr(self, "_nonsense")
            settings = {"seed": 5, "py_num_workers": 3, "bytes_per_sample": 9}
            super().__init__(4, 2, None, prefetch_queue_depth=3, exec_dynamic=True, **settings)

        def define_graph(self) -> Any:
            return lib.fn.random.uniform()

    pipe = Derived()
    pipe.build()
    found = {name: getattr(pipe, name) for name in SETTINGS}
    pipe._seed = "its own"
    return found, pipe._seed, pipe._num_outputs, attempt(lambda: pipe._nonsense)


@private
def registered_names(lib: Library) -> Any:
    added = f"Thing{len(lib.name)}"
    lib.ops.register_gpu_op(added)
    before = added in lib.ops.cpu_ops(), added in lib.ops.gpu_ops()
    registry = importlib.import_module(f"{lib.module.__name__}.ops._registry")
    registry.register_cpu_op(added)
    return before, added in lib.ops.cpu_ops(), attempt(lib.ops.Reload)


@pytest.mark.parametrize("name", private)
def test_name(name):
    assert_same(private[name])


OLD_NAMES = [
    ("fn.numpy_reader", {}),
    ("fn.coin_flip", {}),
    ("ops.MXNetReader", {"path": "data", "index_path": "index"}),
    ("ops.Uniform", {"range": [0.0, 1.0]}),
    ("fn.experimental.tensor_resize", {"sizes": [1]}),
    ("ops.experimental.TensorResize", {"sizes": [1]}),
]


@pytest.mark.parametrize(("path", "arguments"), OLD_NAMES)
def test_warnings_of_old_names(path, arguments):
    """They name what was called, and the function in its place."""

    def first_line(package):
        library = importlib.import_module(package)
        pipeline = importlib.import_module(f"{package}.pipeline")
        made = operator.attrgetter(path)(library)
        with pipeline.Pipeline(batch_size=1, num_threads=1, device_id=None):
            inputs = [library.fn.external_source()] if "resize" in path.lower() else []
            call = made(**arguments) if path.startswith("ops.") else partial(made, **arguments)
            with pytest.warns(DeprecationWarning, match="now deprecated") as caught:
                call(*inputs)
        (found,) = caught
        return str(found.message).partition("\n")[0].replace(package, "library")

    assert first_line("headrace") == first_line("nvidia.dali")
