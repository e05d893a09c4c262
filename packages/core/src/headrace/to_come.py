"""Features of DALI 2.4 besides operators that this installation or version lacks.

One table feeds the errors of imports, the page ``docs/to-come.md`` and the README.
"""

from __future__ import annotations

from typing import NamedTuple

from headrace.dali_names import DALI_CLASSES
from headrace.errors import (
    MissingModuleError,
    ModuleNotReleasedError,
    PluginNotInstalledError,
    PrivateNameError,
)

REPOSITORY = "https://github.com/headrace/headrace"
DOCUMENTS = f"{REPOSITORY}/blob/main/docs"


class MissingFeature(NamedTuple):
    """Something that DALI has."""

    what: str
    instead: str = ""


PLUGINS = {
    "headrace.experimental.torchvision": ("headrace-torch", "torchvision's transforms"),
    "headrace.plugin.jax": ("headrace-jax", "JAX and Flax iterators"),
    "headrace.plugin.pytorch": ("headrace-torch", "PyTorch iterators"),
    "headrace.plugin.ray": ("headrace-ray", "pipelines on a Ray cluster"),
    "headrace.plugin.squirrel": ("headrace-squirrel", "Squirrel data sets as sources"),
    "headrace.plugin.tf": ("headrace-tf", "TensorFlow datasets"),
}
"""Modules that distributions of their own bring: their names, and what is in them."""

_COMPILED = (
    "It is a part of DALI's compiled library. `headrace.backend` and `headrace.tensors` have the "
    "classes of data."
)
_INTERNAL = "It is internal to DALI."
_IN_PYTHON = f"Operators are written in Python: {DOCUMENTS}/operators.md."
NO_COUNTERPART = {
    "headrace.external_source": "Use `fn.external_source` or `ops.ExternalSource`.",
    "headrace.internal": _INTERNAL,
    "headrace.libdali": _COMPILED,
    "headrace.libdali_core": _COMPILED,
    "headrace.libdali_kernels": _COMPILED,
    "headrace.libdali_operators": _COMPILED,
    "headrace.plugin.jax.integration": _INTERNAL,
    "headrace.plugin.paddle": "Batches of `Pipeline.run()` reach PaddlePaddle by DLPack.",
    "headrace.reducers": _INTERNAL,
    "headrace.sysconfig": f"It has the flags to compile operators in C++. {_IN_PYTHON}",
}
"""Modules that are not to come, and what to use."""

FORMER = {
    "headrace.edge": "Edges are `headrace.data_node.DataNode`.",
    "headrace.experimental.eager": "`headrace.experimental.dynamic` runs operators at once.",
    "headrace.plugin.mxnet": (
        "MXNet is no longer developed. `headrace.plugin.pytorch` has these iterators, and batches "
        "of `Pipeline.run()` reach other libraries as arrays of NumPy and by DLPack."
    ),
}
"""Modules that DALI had in former releases, and what to use."""

FORMER_OPERATORS = {
    "cropcastpermute": "crop_mirror_normalize",
    "hostdecoder": "decoders.image",
    "hostdecodercrop": "decoders.image_crop",
    "hostdecoderrandomcrop": "decoders.image_random_crop",
    "hostdecoderslice": "decoders.image_slice",
    "newcrop": "crop",
    "newresize": "resize",
    "normalizepermute": "crop_mirror_normalize",
    "nvjpegdecoder": "decoders.image",
    "nvjpegdecodercrop": "decoders.image_crop",
    "nvjpegdecoderrandomcrop": "decoders.image_random_crop",
    "nvjpegdecoderslice": "decoders.image_slice",
}
"""Operators of such releases, in small letters without underscores, and what has replaced them."""


_DYNAMIC = {
    "_arithmetic": (),
    "_async": (),
    "_batch": ("Batch", "as_batch", "batch"),
    "_batch2tensor": (),
    "_call_site": (),
    "_capture": (),
    "_device": ("Device", "DeviceLike", "device"),
    "_eval_context": ("EvalContext",),
    "_eval_mode": ("EvalMode",),
    "_exceptions": (),
    "_external_source": ("ExternalSource",),
    "_imread": ("imread",),
    "_invocation": (),
    "_nvtx": (),
    "_op_builder": (),
    "_op_filter": (),
    "_source_analysis": (),
    "_stream": (
        *("Stream", "get_current_stream", "get_default_stream", "set_current_stream"),
        *("set_default_stream", "stream"),
    ),
    "_tensor": ("Tensor", "as_tensor", "tensor"),
    "_thread_pool": ("ThreadPool", "get_num_threads", "set_num_threads"),
    "_type": (
        *("DType", "DataType", "ImageType", "InterpType", "dtype", "type_id", "bool", "bfloat16"),
        *("float16", "float32", "float64", "int8", "int16", "int32", "int64"),
        *("uint8", "uint16", "uint32", "uint64"),
    ),
}
"""Private modules of dynamic mode, and the names in them that dynamic mode has itself."""

PRIVATE = frozenset(
    f"headrace.{name}"
    for name in (
        *("_autograph", "_backend_enums", "_conditionals", "_debug_mode", "_debug_utils"),
        *("_multiproc", "_tensor_formatting", "_typing"),
        *("_utils", "_utils.autoserialize", "_utils.external_source_impl", "_utils.hacks"),
        *("ops._docs", "ops._names", "ops._operators", "ops._operator_utils"),
        *("ops._python_def_op_utils", "ops._registry", "ops._signatures"),
        *(f"experimental.dynamic.{module}" for module in _DYNAMIC),
        "experimental.dynamic.capture._invariant",
    )
)
"""Modules that are private in DALI. Programs import some beside what they need, so importing one
works, and only what is looked up in it is an error."""

_RETURNED = "headrace.operators.support.external.returned"
_SCHEMAS = "headrace.operators.support.schema_view"
_INVARIANTS = "headrace.experimental.dynamic.invariants"
PRIVATE_NAMES = {
    "headrace._autograph": {
        "is_autograph_artifact": "headrace.graph.rewritten:is_rewritten",
    },
    "headrace._utils.autoserialize": {
        "invoke_autoserialize": "headrace.plugin.triton:invoke_autoserialize",
    },
    "headrace._utils.external_source_impl": {
        "accepted_arg_count": "headrace.operators.support.external.callback:takes_one_argument",
        "assert_cpu_batch_data_type": f"{_RETURNED}:check_batch",
        "assert_cpu_sample_data_type": f"{_RETURNED}:check_sample",
        "batch_to_numpy": f"{_RETURNED}:batch_array",
        "sample_to_numpy": f"{_RETURNED}:sample_array",
    },
    "headrace._utils.hacks": {"not_iterable": "headrace.graph.data_node:not_iterable"},
    "headrace.ops._names": {
        "_get_variadic_input_name": f"{_SCHEMAS}:variadic_input_name",
    },
    "headrace.ops._signatures": {"_call_signature": f"{_SCHEMAS}:call_signature"},
    "headrace.ops._registry": {
        name: f"headrace.ops:{name}"
        for name in ("cpu_ops", "gpu_ops", "mixed_ops", "register_cpu_op", "register_gpu_op")
    },
    **{
        f"headrace.experimental.dynamic.{module}": {
            name: f"headrace.experimental.dynamic:{name}" for name in names
        }
        for module, names in _DYNAMIC.items()
    },
    "headrace.experimental.dynamic._capture": {
        "CapturedBatch": "headrace.experimental.dynamic.capture.loops:CapturedBatch",
    },
    "headrace.experimental.dynamic.capture._invariant": {
        "is_invariant": f"{_INVARIANTS}:is_invariant",
        "unwrap_invariant": f"{_INVARIANTS}:plain",
        "unwrap_invariants": f"{_INVARIANTS}:plain_inside",
    },
}
"""The names in such modules that have a counterpart: ``module:name`` of it, by module and name."""


def private_name_error(module: str, name: str) -> PrivateNameError:
    """The error for the look-up of `name` in one of `PRIVATE`."""
    return PrivateNameError(
        f"`{module}.{name}` has no counterpart: the module is private in DALI, whose insides are "
        f"not Headrace's. See {DOCUMENTS}/to-come.md"
    )


def missing_module(name: str) -> MissingModuleError | None:
    """The error for the import of a module that is not there; `None` if DALI has none either."""
    plugin = PLUGINS.get(name)
    if plugin is not None:
        distribution, what = plugin
        return PluginNotInstalledError(
            f"`{name}` ({what}) comes with the distribution {distribution}, which is not "
            f"installed. Run `pip install {distribution}`. See {REPOSITORY}#install",
            name=name,
        )
    if name in NO_COUNTERPART:
        return MissingModuleError(
            f"`{name}` is a module of DALI without a counterpart. {NO_COUNTERPART[name]} "
            f"See {DOCUMENTS}/to-come.md",
            name=name,
        )
    if name in FORMER:
        return MissingModuleError(
            f"`{name}` is a module of former releases of DALI, which 2.4 does not have. "
            f"{FORMER[name]}",
            name=name,
        )
    absent = _operators_to_come(name)
    if absent is None:
        return None
    return ModuleNotReleasedError(_text(name, absent), name=name)


def _text(name: str, absent: MissingFeature) -> str:
    instead = f"Meanwhile: {absent.instead} " if absent.instead else ""
    return (
        f"`{name}` ({absent.what}) is to come: DALI 2.4 has it, this version of Headrace does not. "
        f"{instead}See {DOCUMENTS}/to-come.md"
    )


def _operators_to_come(name: str) -> MissingFeature | None:
    """A module of operators, such as `headrace.fn.noise`, of which there is none yet."""
    for root in ("headrace.fn.", "headrace.ops.", "headrace.experimental.dynamic."):
        if name.startswith(root):
            dotted = name.removeprefix(root)
            if any(operator.startswith(f"{dotted}.") for operator in DALI_CLASSES):
                return MissingFeature(
                    "operators", f"{DOCUMENTS}/support-matrix.md lists what there is."
                )
    return None
