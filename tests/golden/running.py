"""Runs the table of cases in each way that has to give the same, several cases in one pipeline."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import replace
from itertools import groupby
from typing import Any, NamedTuple

import numpy as np

import headrace.experimental.dynamic as ndd
from headrace import fn, types
from headrace.experimental.dynamic.functions import is_offered
from headrace.pipeline import Pipeline
from tests.cases.case import Case

SEED = 11
MODES: dict[str, dict[str, Any]] = {
    "plain": {"num_threads": 1},
    "fused off": {"num_threads": 1, "fuse": False},
    "threads": {"num_threads": 4},
    "processes": {"num_threads": 2, "workers": "processes"},
    "sequences": {"num_threads": 2},
    "dynamic": {},
}
"""Ways to run a case, and options of the pipelines that do."""
_CASES_EACH = 40
"""In one pipeline."""
_ITERATIONS = 2


class Output(NamedTuple):
    """All samples of one output, of all iterations."""

    samples: list[np.ndarray]
    layout: str


Outputs = list[Output]


def run(
    cases: Iterable[Case], device: str, mode: str, root: str
) -> Iterator[tuple[str, Outputs | str]]:
    """For each case that runs so its key and what comes out; the error where that is one."""
    found = [c for c in cases if device in c.devices]
    if mode == "sequences":
        # A case keeps its key.
        found = [replace(s, key_of=c.key) for c in found if (s := c.as_sequence()) is not None]
    if mode == "dynamic":
        for case in found:
            schema = case.schema
            offered = is_offered(schema) or schema.reader or schema.module == "random"
            if offered and case.dynamic:
                yield case.key, _or_error(lambda case=case: _dynamic(case, device, root))
        return
    for _, same_size in groupby(sorted(found, key=lambda c: c.size), key=lambda c: c.size):
        several = list(same_size)
        for begin in range(0, len(several), _CASES_EACH):
            yield from _together(several[begin : begin + _CASES_EACH], device, mode, root)


def _together(
    cases: list[Case], device: str, mode: str, root: str
) -> Iterator[tuple[str, Outputs | str]]:
    """Run cases in one pipeline; where that fails, in two, to find the one that does."""
    made = _or_error(lambda: _in_pipeline(cases, device, mode, root))
    if not isinstance(made, str):
        yield from zip((c.key for c in cases), made, strict=True)
    elif len(cases) == 1:
        yield cases[0].key, made
    else:
        half = len(cases) // 2
        yield from _together(cases[:half], device, mode, root)
        yield from _together(cases[half:], device, mode, root)


def _or_error(function: Callable[[], Any]) -> Any:
    try:
        return function()
    except Exception as error:
        return f"{type(error).__name__}: {error}".replace("\n", " ")


def _in_pipeline(cases: list[Case], device: str, mode: str, root: str) -> list[Outputs]:
    options = {"workers": "threads"} | MODES[mode]
    pipe = Pipeline(cases[0].size, device_id=0 if device == "gpu" else None, seed=SEED, **options)
    counts = []
    outputs: list[Any] = []
    with pipe:
        for case in cases:
            made = [_called(case, device, root), *_chained(case, device, root)]
            made = [node for result in made for node in result]
            counts.append(len(made))
            outputs += [node.cpu() if device == "gpu" else node for node in made]
        pipe.set_outputs(*outputs)
    pipe.build()
    batches = [[_as_output(o) for o in pipe.run()] for _ in range(_ITERATIONS)]
    joined = [
        Output([row for output in each for row in output.samples], each[0].layout)
        for each in zip(*batches, strict=True)
    ]
    found = []
    for count in counts:
        found.append(joined[:count])
        joined = joined[count:]
    return found


def _as_output(batch: Any) -> Output:
    return Output([np.array(batch.at(i)) for i in range(len(batch))], batch.layout() or "")


def member(root: Any, name: str) -> Any:
    """What is called so below a module."""
    for part in name.split("."):
        root = getattr(root, part)
    return root


def _returning(batch: Any) -> Callable[[], Any]:
    return lambda: batch


def as_array(value: Any) -> np.ndarray:
    """A per-sample argument, 32 bits wide."""
    array = np.array(value)
    return array.astype({"f": np.float32, "i": np.int32, "b": np.bool_}[array.dtype.kind])


def _inputs(case: Case, device: str) -> list[Any]:
    nodes = []
    for number, (rows, layout) in enumerate(case.inputs):
        node = fn.external_source(_returning(rows), layout=layout or None)
        nodes.append(node.gpu() if device == "gpu" and _goes_up(case, number) else node)
    return nodes


def _goes_up(case: Case, number: int) -> bool:
    schema = case.schema
    if "mixed" in schema.devices or schema.copies_to or schema.name == "_copy_to_cpu":
        return False
    declared = schema.inputs[min(number, len(schema.inputs) - 1)].device if schema.inputs else None
    return declared != "cpu"


def _called(case: Case, device: str, root: str, inputs: list[Any] | None = None) -> list[Any]:
    """The operator's outputs."""
    inputs = _inputs(case, device) if inputs is None else inputs
    if case.written is not None:
        return [case.written(fn, *inputs)]
    args = case.constants(types, root)
    for name, values in case.tensors.items():
        args[name] = fn.external_source(_returning([as_array(v) for v in values]))
    if case.schema.random:
        args["seed"] = SEED
    if device == "gpu":
        args["device"] = "mixed" if "mixed" in case.schema.devices else "gpu"
    if case.name == "readers.tfrecord":
        args["features"] = _features(case)
        return list(fn.readers.tfrecord(**args).values())
    result = member(fn, case.name)(*inputs, **args)
    return list(result) if isinstance(result, (list, tuple)) else [result]


def _features(case: Case) -> dict[str, Any]:
    from headrace import tfrecord

    kinds = {"bytes": (tfrecord.string, ""), "int64": (tfrecord.int64, 0)}
    return {
        name: tfrecord.FixedLenFeature((), *kinds[kind])
        for name, kind in case.args["features"].items()
    }


def _chained(case: Case, device: str, root: str) -> list[list[Any]]:
    """The operator between two others, which it may become one with."""
    if not case.inputs or case.schema.is_typed_late(case.args):
        return []
    inputs = _inputs(case, device)
    (rows, layout), *_ = case.inputs
    image = layout == "HWC" and rows[0].dtype in (np.uint8, np.float32)
    if image and len(inputs) == 1:
        inputs[0] = fn.slice(inputs[0], rel_start=[0.1, 0], rel_shape=[0.8, 1], axis_names="HW")
    (first, *_) = _called(case, device, root, inputs)
    if case.schema.name.startswith(_IMAGES) and (image or "mixed" in case.schema.devices):
        return [[fn.crop_mirror_normalize(first, mirror=1, mean=[90.0], std=[50.0])]]
    return [[fn.cast(first, dtype=types.FLOAT) * 0.5 + 1]]


_IMAGES = (
    *("brightness", "color", "contrast", "crop", "decoders.image", "flip", "hsv", "hue"),
    *("random_resized_crop", "resize", "rotate", "saturation", "slice", "warp_affine"),
)


def _dynamic(case: Case, device: str, root: str) -> Outputs:
    args = case.constants(types, root)
    if case.schema.reader:
        return _read(case, args)
    inputs = [ndd.batch(list(rows), layout=layout or None) for rows, layout in case.inputs]
    if device == "gpu":
        inputs = [x.gpu() if _goes_up(case, k) else x for k, x in enumerate(inputs)]
    if case.written is not None:
        return [_as_batch(case.written(ndd, *inputs))]
    for name, values in case.tensors.items():
        args[name] = ndd.batch([as_array(v) for v in values])
    if case.schema.random:
        args["rng"] = ndd.random.RNG(seed=SEED)
    if not inputs:
        args["batch_size"] = case.size
    if device == "gpu":
        args["device"] = "gpu"
    result = member(ndd, case.name)(*inputs, **args)
    return [_as_batch(each) for each in (result if isinstance(result, tuple) else [result])]


def _as_batch(batch: Any) -> Output:
    return Output([np.asarray(t) for t in batch.cpu().tensors], batch.layout or "")


def _read(case: Case, args: dict[str, Any]) -> Outputs:
    *module, name = case.name.split(".")
    made = {"file": "File", "caffe": "Caffe", "caffe2": "Caffe2", "coco": "COCO"}
    made |= {"mxnet": "MXNet", "nemo_asr": "NemoAsr", "numpy": "Numpy", "fits": "Fits"}
    made |= {"tfrecord": "TFRecord", "webdataset": "Webdataset"}
    made |= {"video": "Video", "video_resize": "VideoResize"}
    if name == "tfrecord":
        args["features"] = _features(case)
    reader = member(ndd, ".".join([*module, made[name]]))(**args)
    joined: list[Output] = []
    for batches in reader.next_epoch(batch_size=case.size):
        values = batches.values() if isinstance(batches, dict) else batches
        values = [values] if isinstance(values, ndd.Batch) else values
        each = [_as_batch(batch) for batch in values]
        before = joined or [Output([], batch.layout) for batch in each]
        joined = [
            Output(a.samples + b.samples, b.layout) for a, b in zip(before, each, strict=True)
        ]
    return joined
