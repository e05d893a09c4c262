"""`imread`: images by the names of their files."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace.errors import ArgumentTypeError, ArgumentValueError
from headrace.executor.loader import Loader
from headrace.experimental.dynamic import calling
from headrace.experimental.dynamic.values import HostValue, ValueReference
from headrace.operators.readers.index import FileIndex
from headrace.operators.support.registry import find
from headrace.operators.support.schema import Spec
from headrace.tensors.pool import HOST_POOL
from headrace.types import DALIDataType

_BYTES = Spec(DALIDataType.UINT8, 1)


class Files:
    """Reads files when they are needed."""

    def __init__(self, paths: Sequence[str] | ValueReference) -> None:
        self._paths = paths
        size = len(paths) if not isinstance(paths, ValueReference) else paths.size
        self.reference = ValueReference(_BYTES, size, None, self)
        if isinstance(paths, ValueReference):
            paths.uses.append(None)

    def ensure(self) -> None:
        """Read the files."""
        if self.reference.value is not None:
            return
        paths = self._paths
        if isinstance(paths, ValueReference):
            paths = [row.tobytes().decode() for row in paths.get().rows]
        index = FileIndex(list(paths))
        found = Loader(index).load(np.arange(len(index)), HOST_POOL.empty)
        rows = found.columns[0]
        for entry in found.missing:
            rows.insert(entry, index.fetch(entry)[0])
        self.reference.value = HostValue(rows, _BYTES, list(paths))
        self.reference.owner = None


def imread(filepaths: Any, /, *, device: str = "cpu", **arguments: Any) -> Any:
    """Read and decode images.

    Parameters
    ----------
    filepaths
        Name of a file, for a `Tensor`; a list of names, for a `Batch`. Or a tensor or a batch of
        the characters of names (uint8).
    device
        Where to decode: ``"cpu"`` or ``"gpu"``.
    **arguments
        Those of `decoders.image`.

    Returns
    -------
    Tensor or Batch
        The pixels, uint8 in the layout HWC unless `arguments` say otherwise.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError
        If `filepaths` is none of the above, or an argument is wrong.
    BadSampleError
        If a file cannot be read or decoded: where the result is looked at, as always.
    """
    if device not in ("cpu", "gpu"):
        raise ArgumentValueError(f'`device` is "cpu" or "gpu", got {device!r}.')
    if isinstance(filepaths, calling.TensorHandle):
        reference = filepaths._reference
        if reference.spec.dtype != DALIDataType.UINT8:
            raise ArgumentTypeError(
                "`filepaths` given as a tensor holds the characters of the name, uint8."
            )
        files = Files(reference)
    elif isinstance(filepaths, (str, os.PathLike)):
        files = Files([_name(filepaths)])
        files.reference.size = None
    elif isinstance(filepaths, (list, tuple)):
        if not filepaths:
            raise ArgumentValueError("`filepaths` is empty; give the name of one file at least.")
        files = Files([_name(path) for path in filepaths])
    else:
        raise ArgumentTypeError(
            "`filepaths` is a str, a path, a list of these, a Tensor or a Batch; got "
            f"{type(filepaths).__name__}."
        )
    encoded = calling.handle_of(files.reference)
    return calling.call(
        find("decoders.image"), (encoded,), None, None if device == "cpu" else device, arguments
    )


def _name(path: Any) -> str:
    if not isinstance(path, (str, os.PathLike)):
        raise ArgumentTypeError(f"`filepaths` holds {path!r}; it must hold names of files only.")
    return str(os.fspath(path))
