"""`dump_image`."""

from __future__ import annotations

import numpy as np

from headrace.errors import BadSamplesError, ShapeError
from headrace.kernels.gpu.transfer import to_host
from headrace.operators.support.argument_types import LayoutArg, StringArg
from headrace.operators.support.operator import (
    BatchContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.schema import Arg, Input, Spec
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.types import DALIDataType


@operator(
    "dump_image",
    inputs=Input("images", "Images.", dtypes=(DALIDataType.UINT8,)),
    args=(
        Arg("suffix", StringArg, "", "Part of the names of files."),
        Arg("input_layout", LayoutArg, "HWC", "Layout of the images.", choices=("HWC",)),
    ),
    output_docs=("The images.",),
)
class DumpImage(SampleOperator):
    """Writes images to files, to be looked at, and gives them on.

    They go to the working directory, in the format PPM (PGM for grey ones) with numbers as text.
    Their names are ``<sample>-<suffix>-0.ppm``, in each iteration, whose files take the place of
    those before.

    Examples
    --------
    >>> images = fn.dump_image(images, suffix="cropped")
    """

    def infer(self, images: Spec) -> Spec:
        if images.ndim not in (3, None):
            raise ShapeError(f"The images must have three dimensions, got {images.ndim}.")
        return images

    def cpu(self, c: SampleContext, image: np.ndarray) -> np.ndarray:
        self._write(c.index, image)
        return image

    def gpu(self, c: BatchContext, images: DeviceBatch) -> DeviceBatch:
        copy = to_host(c.queue, images)
        c.queue.runtime.synchronize(c.queue.stream)  # what is looked at may be waited for
        failures = {}
        for k, (index, image) in enumerate(zip(c.indices, copy.rows, strict=True)):
            try:
                self._write(index, image)
            except (ShapeError, OSError) as error:
                failures[index] = c.located(error, k)
        if failures:
            raise BadSamplesError(failures)
        return images

    def _write(self, index: int, image: np.ndarray) -> None:
        """Write the file of a sample."""
        height, width, channels = image.shape
        if channels not in (1, 3) or not image.size:
            raise ShapeError(
                "Only images of 1 or 3 channels with at least a pixel can be written, got the "
                f"shape {image.shape}."
            )
        lines = [f"P{2 if channels == 1 else 3}", f"{width} {height}", "255"]
        lines += [" ".join(map(str, row)) for row in image.reshape(height, -1).tolist()]
        with open(f"{index}-{self.args.suffix}-0.ppm", "w") as file:
            file.write("\n".join(lines) + "\n")
