"""`random_resized_crop`."""

from __future__ import annotations

import numpy as np

from headrace.errors import ArgumentValueError, ShapeError
from headrace.kernels.plan import random_crop as _random_crop
from headrace.operators.support.argument_types import IntListArg
from headrace.operators.support.operator import operator
from headrace.operators.support.planning import PlanContext
from headrace.operators.support.resize.request import MODES, planned_axes
from headrace.operators.support.resize.resampling import RESAMPLING_ARGS, RESAMPLING_DTYPES
from headrace.operators.support.resize.resizing_operator import ResizingOperator
from headrace.operators.support.schema import REQUIRED, Arg, Input, Spec
from headrace.operators.support.windows.random_crop import RANDOM_CROP_ARGS, random_crop_ranges


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

    def check_constants(self) -> None:
        random_crop_ranges(self.args)
        size = self.args.size
        if len(size) not in (1, 2) or min(size) <= 0:
            raise ArgumentValueError(
                "`size` must be one positive number of pixels or two, (height, width), got "
                f"{list(size)}."
            )

    def infer(self, data: Spec) -> Spec:
        self._area, self._ratio = random_crop_ranges(self.args)
        size, self._attempts = self.args.size, self.args.num_attempts
        self._size = np.array([[size[0]], [size[-1]]], np.float64)
        return self.prepare(data)

    def plan_axes(self, c: PlanContext, extents: np.ndarray) -> np.ndarray:
        if np.count_nonzero(extents) < extents.size:
            height, width = extents[:, int((extents == 0).any(axis=0).argmax())]
            raise ShapeError(
                f"The image is empty ({height}x{width} pixels), so there is no window to choose."
            )
        windows = _random_crop.random_windows(
            extents.T, self._area, self._ratio, self._attempts, c.seed, c.iteration, c.indices
        )
        places = windows.T.astype(np.float64, order="C")
        starts, lengths = places[:2], places[2:]
        return planned_axes(
            extents,
            self._size,
            self.resampling.filters(c),
            (starts, starts + lengths),
            mode=MODES.index("stretch"),
        )
