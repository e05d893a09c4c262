"""`io.file.read`."""

from __future__ import annotations

import numpy as np

from headrace.errors import BadSampleError, ShapeError
from headrace.operators.readers.storage import read_file
from headrace.operators.support.argument_types import BoolArg
from headrace.operators.support.operator import SampleContext, SampleOperator, operator
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.types import DALIDataType


@operator(
    "io.file.read",
    inputs=Input(
        "filepaths",
        "Names of files, or addresses: their bytes as a flat array, which a zero byte may end.",
        dtypes=(DALIDataType.UINT8, DALIDataType.INT8),
        device="cpu",
    ),
    args=(
        Arg(
            "dont_use_mmap",
            BoolArg,
            False,
            "Allow empty files, which are otherwise errors. Files are never mapped to memory.",
        ),
        Arg("use_o_direct", BoolArg, False, "Bypass the cache of the system.", hint=True),
    ),
    output_docs=("Content of each file, 1-D, uint8.",),
    devices=("cpu",),
)
class FileRead(SampleOperator):
    """Reads the files that the data names.

    Names may be addresses such as ``s3://bucket/key``, which are read through fsspec.

    Examples
    --------
    >>> names = fn.external_source(source=file_names, batch=False)  # uint8: np.frombuffer(b"...")
    >>> images = fn.decoders.image(fn.io.file.read(names))
    """

    def infer(self, filepaths: Spec) -> Spec:
        if filepaths.ndim not in (1, None):
            raise ShapeError(
                f"`filepaths` must have one dimension, bytes of a name, got {filepaths.ndim}."
            )
        return Spec(DALIDataType.UINT8, 1)

    def cpu(self, c: SampleContext, filepaths: np.ndarray) -> np.ndarray:
        path = filepaths.tobytes().partition(b"\0")[0].decode("utf-8", "surrogateescape")
        data = read_file(path, c.empty)
        if not data.size and not self.args.dont_use_mmap:
            raise BadSampleError(
                f"The file {path!r} is empty. `dont_use_mmap=True` lets empty files through."
            )
        return data
