"""Turn what a source returned into the samples of a batch."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentTypeError,
    DataTypeError,
    HeadraceError,
    LayoutError,
    OutOfRangeError,
    ShapeError,
)
from headrace.tensors.pool import HostPool
from headrace.types import DALIDataType, storage_dtype
from headrace.types.fitting import fitted, numbers_of
from headrace.types.side_data import SIDE_TYPES, encoded


def as_arrays(samples: Iterable[Any], wanted: DALIDataType | None = None) -> list[np.ndarray]:
    """Each of `samples` as by `as_array`; an error says which it is about."""
    if isinstance(samples, (list, tuple)) and _are_arrays(samples) and wanted not in SIDE_TYPES:
        return list(samples)
    arrays: list[np.ndarray] = []
    try:
        for sample in samples:
            arrays.append(as_array(sample, wanted))  # noqa: PERF401 - it counts for the message
    except HeadraceError as error:
        raise type(error)(f"Sample {len(arrays)}: {error}") from error.__cause__
    return arrays


def _are_arrays(samples: Sequence[Any]) -> bool:
    """True if all are arrays of one type that can be taken, which is quickly seen."""
    if set(map(type, samples)) != {np.ndarray}:
        return False
    dtype = samples[0].dtype
    if dtype.kind not in "biuf" or not dtype.isnative or dtype.itemsize > 8:
        return False
    return [sample.dtype for sample in samples].count(dtype) == len(samples)


def as_array(value: Any, wanted: DALIDataType | None = None) -> np.ndarray:
    """`value` as a NumPy array in native byte order, without a copy where that is possible.

    Python's numbers become of type `wanted`, by default int32, float32 or bool.
    """
    if wanted in SIDE_TYPES:
        return encoded(value, wanted)
    array = _import(value, wanted)
    kind = array.dtype.kind
    if kind not in "biuf":
        raise DataTypeError(
            f"External data has elements of type {array.dtype}; integers, floats (16 to 64 bits) "
            "and booleans can be taken."
        )
    if not array.dtype.isnative:
        array = array.astype(array.dtype.newbyteorder("="))
    if array.dtype.itemsize > 8:
        raise DataTypeError(
            f"External data has elements of type {array.dtype}, wider than 64 bits."
        )
    return array


def _import(value: Any, wanted: DALIDataType | None) -> np.ndarray:
    if isinstance(value, (np.ndarray, np.generic)):
        return np.asarray(value)
    if value is None:
        raise DataTypeError(
            "External data is None where numbers were expected: the source has returned nothing. "
            "Return the data, or raise StopIteration at its end."
        )
    if isinstance(value, (bytes, bytearray, memoryview)):
        return np.frombuffer(value, np.uint8)
    if isinstance(value, (bool, int, float)):
        return _from_numbers(value, wanted)
    try:
        if hasattr(value, "__array_interface__") or hasattr(value, "__array__"):
            return np.asarray(value)
        if hasattr(value, "__dlpack__"):
            return np.from_dlpack(value)
    except Exception as error:
        raise DataTypeError(
            f"External data is a {type(value).__name__} that gives no NumPy array: {error}"
        ) from error
    if type(value).__name__ == "PyCapsule":
        from headrace.tensors.tensor import TensorCPU

        return np.asarray(TensorCPU(value))
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _from_numbers(value, wanted)
    raise DataTypeError(
        f"External data is a {type(value).__name__}; expected a NumPy array, something with "
        "`__array__`, `__array_interface__` or `__dlpack__`, a tensor, or numbers. Texts travel "
        "beside tensors with `dtype=types.STRING`, other objects with `types.PYTHON_OBJECT`; "
        "files are read by `fn.readers.file(files=[...])`."
    )


_NARROWER = {np.dtype(np.int64): np.dtype(np.int32), np.dtype(np.float64): np.dtype(np.float32)}


def _from_numbers(value: Any, wanted: DALIDataType | None) -> np.ndarray:
    found = numbers_of(value)
    kind = found.dtype.kind
    huge = kind == "O" and all(isinstance(v, (int, float)) for v in found.flat)
    if kind not in "biuf" and not huge:
        return found
    if wanted is not None and wanted != DALIDataType.NO_TYPE:
        return fitted(value, storage_dtype(wanted), whole=True)
    if huge and any(isinstance(v, float) for v in found.flat):
        return fitted(value, np.dtype(np.float32))
    if huge or (found.dtype == np.uint64 and int(found.max()) >> 63):
        return fitted(value, np.dtype(np.int32))  # which says that it does not fit
    return fitted(value, _NARROWER.get(found.dtype, found.dtype))


def samples_of(
    batch: Any, wanted: DALIDataType | None = None
) -> tuple[list[np.ndarray] | np.ndarray, str]:
    """Samples of a batch, or the array that they are the rows of; and the layout it came with.

    Python's numbers become of type `wanted`; see `as_array`.
    """
    if wanted in SIDE_TYPES:
        return as_arrays(_objects_of(batch, wanted), wanted), ""
    if _is_tensor_list(batch):
        layout = batch.layout() or ""
        return [np.asarray(batch.at(i)) for i in range(len(batch))], layout
    if isinstance(batch, (list, tuple)):
        return as_arrays(batch, wanted), common_layout(batch)
    if isinstance(batch, (bool, int, float)) and not isinstance(batch, np.generic):
        raise DataTypeError(
            f"External data came as the number {batch!r} for a batch; expected an array whose "
            "outermost dimension is the batch, or a list of samples."
        )
    array = as_array(batch, wanted)
    if array.ndim == 0:
        raise OutOfRangeError(
            "The source returned a single number for a batch; expected an array whose outermost "
            "dimension is the batch, or a list of samples. Use batch=False to return samples."
        )
    layout = (batch.layout() or "") if _is_tensor(batch) else ""
    layout = layout[1:] if layout.startswith("N") else ""
    return array, layout


def _objects_of(batch: Any, wanted: DALIDataType) -> list[Any]:
    """The texts or objects that a batch of side data has."""
    if _is_tensor_list(batch):
        return [batch.at(i) for i in range(len(batch))]
    if isinstance(batch, np.ndarray) and batch.ndim:
        return list(batch.tolist())
    if isinstance(batch, (list, tuple)):
        return list(batch)
    raise DataTypeError(
        f"A batch of side data ({wanted.name}) is a list with a value for each sample, got "
        f"{batch!r}."
    )


def per_output(data: Any, count: int | None) -> list[Any]:
    """Split what a source returned into `count` outputs; a `count` of None means a single
    output.
    """
    if count is None:
        return [data]
    if isinstance(data, np.ndarray) and data.ndim and len(data) == count:
        return list(data)  # the outermost dimension counts the outputs
    if not isinstance(data, (tuple, list)):
        raise ArgumentTypeError(
            f"With num_outputs={count} the source must return a tuple or list "
            f"with one element for each output, got a {type(data).__name__}."
        )
    if len(data) < count:
        raise OutOfRangeError(f"The source returned {len(data)} elements for num_outputs={count}.")
    return list(data[:count])


def common_layout(samples: Sequence[Any]) -> str:
    """The layout that the tensors among `samples` have; those without one say nothing."""
    if set(map(type, samples)) == {np.ndarray}:
        return ""
    return common_layout_of(t.layout() or "" for t in samples if _is_tensor(t))


def common_layout_of(layouts: Iterable[str]) -> str:
    """The layout among `layouts`, empty ones aside; a LayoutError if there are several."""
    found = set(layouts) - {""}
    if len(found) > 1:
        raise LayoutError(f"The samples of a batch differ in layout: {sorted(found)}.")
    return found.pop() if found else ""


def _is_tensor_list(value: Any) -> bool:
    return type(value).__name__.startswith("TensorList") and hasattr(value, "at")


def _is_tensor(value: Any) -> bool:
    return type(value).__name__ in ("TensorCPU", "TensorGPU")


def check_uniform(samples: list[np.ndarray]) -> None:
    """Check that all samples have one type and one number of dimensions."""
    first = samples[0]
    dtypes, ranks = [sample.dtype for sample in samples], [sample.ndim for sample in samples]
    if dtypes.count(first.dtype) == ranks.count(first.ndim) == len(samples):
        return
    for index, sample in enumerate(samples):
        if sample.dtype != first.dtype:
            raise DataTypeError(
                f"Sample {index} has elements of type {sample.dtype}, sample 0 of type "
                f"{first.dtype}. All samples of a batch must have the same type."
            )
        if sample.ndim != first.ndim:
            raise ShapeError(
                f"Sample {index} has {sample.ndim} dimensions, sample 0 has {first.ndim}. All "
                "samples of a batch must have the same number of dimensions."
            )


def own_copies(
    samples: list[np.ndarray], pool: HostPool
) -> tuple[list[np.ndarray], np.ndarray | None]:
    """Copies of `samples` in memory of `pool`, side by side in one array (returned as well) if
    their shapes are equal: the source may fill its buffers anew for the next batch.
    """
    first = samples[0]
    if any(s.shape != first.shape for s in samples):
        return [pool.copy_of(s) for s in samples], None
    dense = pool.empty((len(samples), *first.shape), first.dtype)
    rows = [dense[i, ...] for i in range(len(samples))]
    for row, sample in zip(rows, samples, strict=True):
        np.copyto(row, sample)
    return rows, dense
