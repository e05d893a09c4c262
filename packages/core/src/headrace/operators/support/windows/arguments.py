"""Position of a crop or a slice: arguments shared by all operators that cut a window out of data.

Used by `crop`, `slice`, `crop_mirror_normalize`, `decoders.image_crop`, `decoders.image_slice` and
the fusion of a decoder with any of them, so that every one of them agrees to the pixel.

Windows are two arrays, anchors and shapes, with one row a sample and one entry for **every** axis
of the data; axes that are not cut have anchor 0 and the whole extent. What does not depend on a
sample is resolved in `infer`, and the windows of several samples are worked out at once::

    @operator("crop", inputs=..., args=(*CROP_ARGS, *OUT_OF_BOUNDS_ARGS, ...))
    class Crop(SampleOperator):
        def infer(self, image):
            self._window = CropWindow(self, image.layout)
            self._bounds = OutOfBounds(self)
            return image

        def plan(self, c, image):
            windows = self._window.plan(c, image.shapes)
            anchors, shapes, outside = self._bounds.plan(*windows, image.shapes)
            return Planned(shapes, (anchors, outside))

        def cpu(self, c, image):
            anchor, outside = c.row
            if not outside:
                return image[slices(anchor, c.shape)]
            ...  # make up what lies outside: `headrace.kernels.cpu.pad.pad_window`

`crop` treats the frame axis of a layout without ``D`` as depth (`crop_d`, or a `crop` of three
values, cuts frames), as DALI does; operators that loop over frames pass the layout of one frame
and get windows of frames. What follows a window in `crop` and `slice` (view, conversion, padding,
lazy images) is `headrace.operators.support.windows.cut.Cutter`.
"""

from __future__ import annotations

from headrace.operators.support.windows.arithmetic import Windows, slices
from headrace.operators.support.windows.bounds import OUT_OF_BOUNDS_ARGS, OutOfBounds
from headrace.operators.support.windows.crop import (
    CROP_ARGS,
    CROP_LAYOUTS,
    CROP_RULES,
    CropWindow,
    check_crop,
)
from headrace.operators.support.windows.slice import (
    NAMED_SLICE_ARGS,
    SLICE_ARGS,
    SLICE_RULES,
    SliceWindow,
)

__all__ = [
    "CROP_ARGS",
    "CROP_LAYOUTS",
    "CROP_RULES",
    "NAMED_SLICE_ARGS",
    "OUT_OF_BOUNDS_ARGS",
    "SLICE_ARGS",
    "SLICE_RULES",
    "CropWindow",
    "OutOfBounds",
    "SliceWindow",
    "Windows",
    "check_crop",
    "slices",
]
