"""`experimental.readers.fits`: images in FITS files."""

from __future__ import annotations

from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError
from headrace.kernels.cpu.fits_images import read_images
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import FileIndex, Index, first_of
from headrace.operators.readers.listing import named_file_args, named_files
from headrace.operators.support.argument_types import DataTypeListArg, IntListArg
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.schema import Arg, Spec
from headrace.types import to_dali_type

_UNITS = (2,)


def _count_outputs(args: dict[str, Any]) -> int:
    given = args.get("hdu_indices", _UNITS)
    return 1 if isinstance(given, int) else len(given)


@reader(
    "experimental.readers.fits",
    args=(
        *named_file_args("*.fits"),
        Arg(
            "hdu_indices",
            IntListArg,
            _UNITS,
            "The HDUs to read, each of which is an output. The first one of a file has number 1.",
        ),
        Arg(
            "dtypes",
            DataTypeListArg,
            None,
            "Element types that the outputs have; files with others are errors. Those of the first "
            "file if not given.",
        ),
    ),
    devices=("cpu", "gpu"),
    num_outputs=_count_outputs,
    output_docs=("The image in the HDU, without a layout; the last axis of the file comes first.",),
)
class FitsReader(Reader):
    """Reads images from FITS files, of one element type and number of axes.

    Integers with the offset that makes them unsigned are unsigned, and other scaled numbers become
    float32, or float64 where they have more than 16 bits. Compressed images need the library
    `astropy`, which ``pip install 'headrace[fits]'`` brings.

    Examples
    --------
    >>> images = fn.experimental.readers.fits(file_root="sky")
    >>> images, weights = fn.experimental.readers.fits(file_root="sky", hdu_indices=[1, 2])
    """

    _specs: tuple[Spec, ...]

    def list_entries(self) -> Index:
        args = self.args
        if not args.hdu_indices or min(args.hdu_indices) < 1:
            raise ArgumentValueError(
                f"illegal HDU number in `hdu_indices`={list(args.hdu_indices)}; give at least one, "
                "from 1 on."
            )
        if args.dtypes is not None and len(args.dtypes) != len(args.hdu_indices):
            raise ArgumentValueError(
                "Number of extensions does not match the number of provided types: there are "
                f"{len(args.hdu_indices)} `hdu_indices` and {len(args.dtypes)} `dtypes`."
            )
        root, names = named_files(args)
        index = FileIndex(names, root=root)
        first = first_of(index, self._images) or [np.zeros(0, np.float32)] * len(args.hdu_indices)
        types = args.dtypes or [to_dali_type(image.dtype) for image in first]
        self._specs = tuple([Spec(t, i.ndim) for t, i in zip(types, first, strict=True)])
        return index

    def infer(self, *data: Spec) -> tuple[Spec, ...]:
        return self._specs

    def cpu(self, c: SampleContext, *data: np.ndarray) -> tuple[np.ndarray, ...]:
        images = self._images(data[0])
        for number, image, spec in zip(self.args.hdu_indices, images, self._specs, strict=True):
            if (to_dali_type(image.dtype), image.ndim) != (spec.dtype, spec.ndim):
                raise BadSampleError(
                    f"Inconsistent data: HDU number {number} has elements of type {image.dtype} "
                    f"and {image.ndim} dimensions; {spec.dtype.name} and {spec.ndim} are expected, "
                    "which is what `dtypes` says, or else the first file has."
                )
        return tuple(images)

    def _images(self, data: np.ndarray) -> list[np.ndarray]:
        return read_images(data, self.args.hdu_indices)
