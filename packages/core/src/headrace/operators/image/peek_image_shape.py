"""`peek_image_shape`."""

from __future__ import annotations

import numpy as np

from headrace.kernels.cpu.decode import jpeg_scan
from headrace.kernels.cpu.decode.pixels import PixelFormat
from headrace.operators.support.argument_types import BoolArg, DataTypeArg, ImageTypeArg
from headrace.operators.support.decode.encoded import check_encoded, open_encoded
from headrace.operators.support.decode.image_decoder import ENCODED
from headrace.operators.support.operator import SampleOperator, operator
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.schema import Arg, OldName, Spec, data_types
from headrace.types import DALIDataType, DALIImageType, to_numpy_type

_DTYPES = data_types("INT64 INT32 UINT64 UINT32 FLOAT FLOAT64")


@operator(
    "peek_image_shape",
    old_names=(OldName("experimental.peek_image_shape", dynamic=True),),
    inputs=ENCODED,
    args=(
        Arg(
            "dtype",
            DataTypeArg,
            DALIDataType.INT64,
            "Element type of the shapes.",
            choices=_DTYPES,
        ),
        Arg(
            "image_type",
            ImageTypeArg,
            DALIImageType.RGB,
            "Colour space that the image would be decoded to; it decides the channels.",
        ),
        Arg(
            "adjust_orientation",
            BoolArg,
            True,
            "Whether the image would be turned the way its EXIF orientation asks for.",
        ),
    ),
    output_docs=("Height, width and number of channels of each image.",),
    devices=("cpu",),
)
class PeekImageShape(SampleOperator):
    """Tells the shape that encoded images will have once they are decoded, without decoding them.

    Formats are those of `decoders.image`. A file whose header is fine and whose pixels are damaged
    has a shape, too.

    Examples
    --------
    >>> shapes = fn.peek_image_shape(encoded)
    >>> heights = shapes[0]
    """

    def infer(self, encoded: Spec) -> Spec:
        args = self.args
        check_encoded(encoded.ndim)
        self._dtype = np.dtype(to_numpy_type(args.dtype))
        self._wanted = PixelFormat(args.image_type.name, self._dtype, args.adjust_orientation)
        return Spec(args.dtype, 1)

    plans_values = True

    def plan(self, c: PlanContext, encoded: Samples) -> Planned:
        rows = list(encoded.rows)
        for data in rows:
            check_encoded(data.ndim)
        facts = jpeg_scan.scan_jpegs(rows).facts
        shapes = facts[:, :3].astype(self._dtype)
        if self._wanted.color != "ANY_DATA":
            shapes[:, 2] = 1 if self._wanted.color == "GRAY" else 3
        for k in np.flatnonzero(facts[:, 3] == 0).tolist():  # files that are not as most are
            shapes[k] = self._wanted.shape(open_encoded(rows[k])[1])
        return Planned(values=shapes)
