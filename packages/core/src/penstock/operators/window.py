"""Where a crop or a slice lies: arguments shared by all operators that cut a window out of data.

Used by `crop`, `slice`, `crop_mirror_normalize`, `decoders.image_crop`, `decoders.image_slice` and
the fusion of a decoder with any of them, so that every one of them agrees to the pixel.

A window is a pair of tuples, anchor and shape, with one entry for **every** axis of the data;
axes that are not cut have anchor 0 and the whole extent. Whatever does not depend on a sample is
resolved in `infer`; the work left for a sample is a few floating point operations::

    @operator("crop", inputs=..., args=(*CROP_ARGS, *OUT_OF_BOUNDS_ARGS, ...))
    class Crop(Operator):
        def infer(self, image):
            self._window = CropWindow(self, image.layout)
            self._bounds = OutOfBounds(self)
            return image

        def cpu(self, c, image):
            anchor, shape = self._window(c.args, image.shape)
            anchor, shape, inside = self._bounds.settle(anchor, shape, image.shape)
            if inside:
                return image[slices(anchor, shape)]
            ...  # make up what lies outside: `penstock.kernels.cpu.pad.pad_window`

`crop` treats the frame axis of a layout without ``D`` as depth (`crop_d`, or a `crop` of three
values, cuts frames), as DALI does; operators that loop over frames pass the layout of one frame
and get windows of frames. What follows a window in `crop` and `slice` (view, conversion, padding,
deferred images) is `penstock.operators.cut.Cutter`. On the GPU, windows of a whole batch are found
at once, by `penstock.operators.window_batch`.
"""

from __future__ import annotations

from penstock.operators.window_arithmetic import Window, round_half_away, slices
from penstock.operators.window_bounds import OUT_OF_BOUNDS_ARGS, OutOfBounds
from penstock.operators.window_crop import CROP_ARGS, CropWindow
from penstock.operators.window_slice import NAMED_SLICE_ARGS, SLICE_ARGS, SliceWindow

__all__ = [
    "CROP_ARGS",
    "NAMED_SLICE_ARGS",
    "OUT_OF_BOUNDS_ARGS",
    "SLICE_ARGS",
    "CropWindow",
    "OutOfBounds",
    "SliceWindow",
    "Window",
    "round_half_away",
    "slices",
]
