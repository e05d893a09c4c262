"""`cache`, and the operators that it becomes: see `headrace.graph.cached`."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import (
    ArgumentValueError,
    BadSampleError,
    DataTypeError,
    NotYetSupportedError,
    ShapeError,
)
from headrace.kernels.cpu.jpeg_compression import LARGEST, decoded, encoded
from headrace.operators.cache.lookup import PLACE, key_of, shapes_of
from headrace.operators.cache.store import MOST_DIMENSIONS, Store
from headrace.operators.support.argument_types import IntArg, ObjectArg, PathArg, StringArg
from headrace.operators.support.operator import SampleContext, SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.types import DALIDataType, storage_dtype

_JPEG = "jpeg"
_FORMAT = (
    Arg(
        "format",
        StringArg,
        None,
        'For images of bytes, HWC, RGB or gray, ``"jpeg"``: they are kept compressed, and those of '
        "the first epoch are what comes back, too.",
        choices=(_JPEG,),
    ),
    Arg("quality", IntArg, 95, "Quality of the compression, from 1 to 100."),
)
_STORE = Arg("store", ObjectArg, REQUIRED, "Where samples are kept.")


@operator(
    "cache",
    inputs=Input("data", "Data that follow from what one reader reads, without random numbers."),
    args=(
        Arg(
            "where",
            PathArg,
            "ram",
            '``"ram"``: memory that all processes of this host share, given back when the last '
            "pipeline that uses it is gone; or a directory on a local disk, where samples stay.",
        ),
        Arg(
            "key",
            StringArg,
            None,
            "Name of what your own functions and operators in front of it do, to be changed with "
            "their code. Needed where there are any.",
        ),
        Arg(
            "limit_bytes",
            IntArg,
            None,
            "Most bytes of samples that are kept. When they are reached, other samples are made "
            "anew in every epoch. By default a tenth of the memory or disk is left free.",
        ),
        *_FORMAT,
    ),
    output_docs=("The input.",),
    dynamic=False,
)
class Cache(SampleOperator):
    """Keeps samples: those that were seen once are neither read nor made again.

    The work in front of it, reading included where nothing else uses the files, is done for samples
    that are not there yet, as all are in the first epoch. What is kept is found by the operators in
    front with their arguments, by the file with its size and its times of change, and by
    the columns of the reader that they use; if anything of it changes, samples are made anew.
    Damaged files of a cache are, too. Put it in front of the first random operator.
    """

    def check_constants(self) -> None:
        limit = self.args.limit_bytes
        if limit is not None and limit < 0:
            raise ArgumentValueError(f"`limit_bytes` is {limit}, but must not be negative.")
        if not 1 <= self.args.quality <= 100:
            raise ArgumentValueError(f"`quality` is {self.args.quality}; it is from 1 to 100.")
        if not self.args.where:
            raise ArgumentValueError('`where` is empty; give "ram" or the path of a directory.')

    plans_values = True
    needs_plan = False

    def plan(self, c: PlanContext, data: Samples) -> Planned:
        values = data.values
        return Planned(data.shapes) if values is None else Planned(values=values)

    def cpu(self, c: SampleContext, data: np.ndarray) -> np.ndarray:
        return data

    def gpu(self, c: Any, data: Any) -> Any:
        return data


@operator(
    "_cache.store",
    inputs=(Input("data"), Input("record", "What the reader knows of the entry.")),
    args=(_STORE, *_FORMAT),
    devices=("cpu",),
    hidden=True,
    dynamic=False,
)
class StoreSample(SampleOperator):
    """Keeps a sample and passes it on."""

    needs_plan = False

    def infer(self, data: Spec, record: Spec) -> Spec:
        if (data.ndim or 0) > MOST_DIMENSIONS:
            raise NotYetSupportedError(
                f"`fn.cache` keeps samples of up to {MOST_DIMENSIONS} dimensions; these have "
                f"{data.ndim}."
            )
        self._spec = data
        if self.args.format is not None:
            if data.dtype != DALIDataType.UINT8 or data.layout != "HWC":
                raise DataTypeError(
                    f'`format`="{_JPEG}" of `fn.cache` is for images of bytes, HWC; these are of '
                    f'type {data.dtype.name} and layout "{data.layout}".'
                )
            self._spec = Spec(DALIDataType.UINT8, 1)
        return data

    def plan(self, c: PlanContext, data: Samples, record: Samples) -> Planned:
        return Planned(data.shapes)

    def cpu(self, c: SampleContext, data: np.ndarray, record: np.ndarray) -> np.ndarray:
        identity, kept = key_of(record), data
        if self.args.format is not None:
            channels = data.shape[2]
            if channels not in (1, 3) or not data.size or max(data.shape) > LARGEST:
                raise ShapeError(f"An image of the shape {data.shape} cannot be kept as JPEG.")
            kept = encoded(data, self.args.quality)
            data = decoded(kept, channels)
            kept = np.append(kept, np.uint8(channels))
        if identity is not None:
            self.args.store.put(*identity, kept, self._spec)
        return data


@operator(
    "_cache.load",
    inputs=(Input("record"), Input("like", "What has the type of the samples.")),
    args=(_STORE, *_FORMAT),
    devices=("cpu",),
    typed_by_last=True,
    hidden=True,
    dynamic=False,
)
class LoadSample(SampleOperator):
    """Maps a sample that is kept."""

    needs_plan = False
    plans_values = True

    def infer(self, record: Spec, like: Spec | None) -> Spec:
        store: Store = self.args.store
        compressed = self.args.format is not None
        images = Spec(DALIDataType.UINT8, 3, "HWC") if compressed and store.spec() else None
        spec = like if like is not None else images or store.spec()
        if spec is None:  # nothing is kept: no sample gets here
            raise BadSampleError(f"The cache in {str(store.folder)!r} has no samples.")
        self._spec, self._dtype = spec, storage_dtype(spec.dtype)
        self._ndim = spec.ndim
        if spec.ndim is None or compressed:  # the shapes of different samples have no common array
            self.plan = None  # type: ignore[assignment]
        return spec

    def plan(self, c: PlanContext, record: Samples) -> Planned | None:
        records = record.dense
        records = np.stack(record.rows) if records is None else records
        assert self._ndim is not None
        return Planned(shapes_of(records, self._ndim))

    def cpu(self, c: SampleContext, record: np.ndarray) -> np.ndarray:
        data, offset, dtype, *shape = record[PLACE.start :].tolist()
        store: Store = self.args.store
        if dtype != self._spec.dtype:
            raise BadSampleError(
                f"The sample that is kept in {str(store.folder)!r} has elements of type "
                f"{DALIDataType(dtype).name}, others of {self._spec.dtype.name}."
            )
        found = store.view(data, offset, tuple([n for n in shape if n >= 0]), self._dtype)
        return found if self.args.format is None else decoded(found[:-1], int(found[-1]))
