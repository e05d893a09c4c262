"""`random_resized_crop`."""

from __future__ import annotations

from typing import TYPE_CHECKING

from penstock.errors import ArgumentValueError, ShapeError
from penstock.kernels.cpu.random_crop import choose_crop, uniforms_needed
from penstock.operators.argument_types import IntListArg
from penstock.operators.image.random_crop_arguments import RANDOM_CROP_ARGS, random_crop_ranges
from penstock.operators.image.resample_sample import whole_windows
from penstock.operators.image.resampling import RESAMPLING_ARGS, RESAMPLING_DTYPES
from penstock.operators.image.resize_geometry import AxisGeometry
from penstock.operators.image.resize_geometry_batch import OneByOneError
from penstock.operators.image.resizing_operator import Plan, ResizingOperator
from penstock.operators.operator import BatchContext, SampleContext, operator
from penstock.operators.schema import REQUIRED, Arg, Input, Spec

if TYPE_CHECKING:
    import numpy as np

    from penstock.kernels.gpu.resample_axes import AxesSampling

_WORD = 0xFFFFFFFF


@operator(
    "random_resized_crop",
    inputs=Input(
        "data",
        "Images or sequences of them.",
        layouts=("HWC", "CHW", "FHWC", "FCHW", "CFHW"),
        dtypes=RESAMPLING_DTYPES,
    ),
    args=(
        Arg(
            "size",
            IntListArg,
            REQUIRED,
            "Extents of the output in pixels: `(height, width)`, or one number for both.",
        ),
        *RANDOM_CROP_ARGS,
        *RESAMPLING_ARGS,
    ),
    output_docs=("The resized windows, in the layout of the input.",),
    random=True,
    defers=True,
    takes_deferred=True,
)
class RandomResizedCrop(ResizingOperator):
    """Cuts a random window out of each image and resizes it: the usual augmentation of training.

    The window's area is uniform between the bounds of `random_area`, as a fraction of the image's
    area, the logarithm of its aspect ratio (width / height) between those of
    `random_aspect_ratio`, and its place anywhere in the image. Filters see the pixels around the
    window. All frames of a sequence get the same window.

    An image decoder in front of it decodes no more than the window.

    Examples
    --------
    >>> crops = fn.random_resized_crop(images, size=(224, 224), random_area=(0.2, 1.0))
    """

    def infer(self, *inputs: Spec) -> Spec:
        args = self.args
        self._area, self._ratio = random_crop_ranges(args)
        self._attempts = args.num_attempts
        self._count = uniforms_needed(self._attempts)
        size = args.size
        if len(size) not in (1, 2) or min(size) <= 0:
            raise ArgumentValueError(
                "`size` must be one positive number of pixels or two, (height, width), got "
                f"{list(size)}."
            )
        self._size = size[0], size[-1]
        from penstock.kernels.cpu.random_crop_loops import crop_window

        self._crop_window = crop_window
        return self.prepare(inputs[0])

    def _window(self, c: SampleContext, height: int, width: int) -> tuple[int, int, int, int]:
        """Row, column, height and width of the window of an image."""
        area, ratio, attempts, seed = self._area, self._ratio, self._attempts, c.seed
        if type(seed) is not int:  # numbers of another stream
            uniforms = c.uniforms(self._count).tolist()
            return choose_crop(height, width, uniforms, area, ratio, attempts)
        key = _key(c.iteration, seed)
        window: tuple[int, int, int, int] = self._crop_window(
            height, width, area, ratio, attempts, c.index, key
        )
        return window

    def sample_plan(self, c: SampleContext, extents: tuple[int, ...]) -> Plan:
        height, width = extents
        if not height or not width:
            raise ShapeError(
                f"The image is empty ({height}x{width} pixels), so there is no window to choose."
            )
        y, x, rows, columns = self._window(c, height, width)
        geometry = (
            AxisGeometry(height, self._size[0], float(y), float(y + rows)),
            AxisGeometry(width, self._size[1], float(x), float(x + columns)),
        )
        axes = self.resampling.axes(c.args, geometry)
        return axes, whole_windows(axes)

    draws = True

    def batch_plan(self, c: BatchContext, extents: np.ndarray) -> AxesSampling:
        from penstock.kernels.gpu.random_crop import random_crops

        axes = random_crops(
            extents,
            c.size,
            self._size,
            self._area,
            self._ratio,
            self._attempts,
            c.seed,
            c.iteration,
            self.resampling.batch_filters(c),
        )
        if axes is None:
            raise OneByOneError
        return self.sampling(c, axes)


def _key(iteration: int, seed: int) -> tuple[int, int, int, int]:
    return iteration & _WORD, iteration >> 32, seed & _WORD, (seed >> 32) & _WORD
