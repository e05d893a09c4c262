"""`crop_mirror_normalize`."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from contextlib import closing
from itertools import product
from typing import Any

import numpy as np

from headrace.errors import ArgumentValueError, LayoutError
from headrace.operators.support.argument_types import (
    BoolArg,
    DataTypeArg,
    FloatListArg,
    ImageTypeArg,
    IntArg,
    LayoutArg,
    StringArg,
)
from headrace.operators.support.arguments import numbers_of
from headrace.operators.support.compiled_steps import (
    CompiledStepContext,
    SampleColumns,
    Word,
)
from headrace.operators.support.lazy_image import LazyImage, LazyPixels
from headrace.operators.support.normalize.normalized_windows import AxisOrder, NormalizedWindows
from headrace.operators.support.normalize.pixels import (
    NORMALIZATION_ARGS,
    Coefficients,
    PixelNormalization,
)
from headrace.operators.support.normalize.suspect import suspect_moments
from headrace.operators.support.operator import (
    BatchContext,
    ChunkContext,
    SampleContext,
    SampleOperator,
    operator,
)
from headrace.operators.support.planning import PlanContext, Planned, Samples, plan_batch
from headrace.operators.support.pointwise.color_batch import ColorBatch
from headrace.operators.support.resize.image_groups import resample_group
from headrace.operators.support.resize.resized_batch import ResizedBatch
from headrace.operators.support.resize.resized_columns import ResizedColumns
from headrace.operators.support.resize.resized_image import ResizedImage
from headrace.operators.support.schema import Arg, Input, Spec, data_types
from headrace.operators.support.video.lazy_clip import LazyClip
from headrace.operators.support.warp.warped_batch import WarpedBatch
from headrace.operators.support.windows.arguments import (
    CROP_ARGS,
    CROP_LAYOUTS,
    CROP_RULES,
    CropWindow,
    OutOfBounds,
    check_crop,
)
from headrace.operators.support.windows.cut import compiled_mirror, compiled_window
from headrace.tensors.gpu.batch import (
    DeviceBatch,
    LazyBatch,
    StridedBatch,
    as_contiguous,
    shape_rows,
)
from headrace.tensors.rows import Rows
from headrace.tensors.strided_rows import StridedRows
from headrace.types import DALIDataType, to_numpy_type

_IN_TYPES = data_types("UINT8 INT16 UINT16 INT32 FLOAT FLOAT16")
_OUT_TYPES = (DALIDataType.FLOAT, DALIDataType.FLOAT16, DALIDataType.UINT8, DALIDataType.INT8)


@operator(
    "crop_mirror_normalize",
    inputs=Input(
        "data", "Images, volumes or sequences of them.", layouts=CROP_LAYOUTS, dtypes=_IN_TYPES
    ),
    args=(
        *CROP_ARGS,
        *NORMALIZATION_ARGS,
        Arg(
            "mirror",
            IntArg,
            0,
            "Whether to mirror the window horizontally: yes unless 0.",
            per_sample=True,
        ),
        Arg(
            "dtype",
            DataTypeArg,
            DALIDataType.FLOAT,
            "Element type of the output. Integers are rounded, halves away from zero, and clamped.",
            choices=_OUT_TYPES,
            late=True,
        ),
        Arg(
            *("output_dtype", DataTypeArg, None, "Former name of `dtype`."),
            choices=_OUT_TYPES,
            late=True,
            deprecated="dtype",
        ),
        Arg(
            "output_layout",
            LayoutArg,
            "CHW",
            "Layout of the output: any order of the input's axes. For sequences and volumes it "
            'must name all of theirs; ``""`` keeps the layout of the input.',
        ),
        Arg(
            "pad_output",
            BoolArg,
            False,
            "Whether to add channels until their number is a power of two. They hold "
            '`fill_values` where `out_of_bounds_policy` is ``"constant"``, and zeros elsewhere.',
        ),
        Arg(
            "out_of_bounds_policy",
            StringArg,
            "error",
            'What happens where the window leaves the data: ``"error"`` raises; ``"constant"`` (or '
            '``"pad"``) fills with `fill_values`; ``"trim_to_shape"`` shrinks the window.',
            choices=("error", "constant", "pad", "trim_to_shape"),
        ),
        Arg(
            "fill_values",
            FloatListArg,
            (0.0,),
            'Values, in the output, of what is not in the data, with policy ``"constant"``: one '
            "for all, or one a channel of the output. Integer types drop fractions.",
        ),
        Arg("image_type", ImageTypeArg, None, "Has had no effect for long.", deprecated=""),
    ),
    rules=CROP_RULES,
    output_docs=("The normalised window in `output_layout`.",),
)
class CropMirrorNormalize(SampleOperator):
    """Cuts out a window, mirrors, normalises, converts and changes the layout, all in one pass.

    Every value becomes ``scale * (value - mean) / std + shift``. The window is that of `crop`;
    without arguments for it, it is the whole sample. Sequences are treated alike in all their
    frames.

    Right after `resize` or `random_resized_crop`, only the window is resampled and goes straight
    to the output. On the GPU, so it does right after `rotate` or `warp_affine`.

    Examples
    --------
    >>> tensors = fn.crop_mirror_normalize(
    ...     images,
    ...     crop=(224, 224),
    ...     mean=[123.7, 116.3, 103.5],
    ...     std=[58.4, 57.1, 57.4],
    ...     mirror=fn.random.coin_flip(),
    ... )
    """

    def check_constants(self) -> None:
        check_crop(self.args)

    def infer(self, data: Spec) -> Spec:
        from headrace.kernels.cpu import normalize_pixels, normalize_rows

        args = self.args
        self._kernels = normalize_rows
        self._kernel = normalize_pixels.normalize_pixels
        dtype = args.output_dtype if args.output_dtype is not None else args.dtype
        self._dtype = np.dtype(to_numpy_type(dtype))
        self._limits = normalize_pixels.LIMITS.get(self._dtype)
        layout = args.output_layout or data.layout
        if sorted(layout) != sorted(data.layout):
            raise LayoutError(
                f'`output_layout` is "{layout}", which are not the axes of the input, '
                f'"{data.layout}". Name each of these once.'
            )
        self._window = CropWindow(self, data.layout)
        self._bounds = OutOfBounds(self)
        self._normalization = PixelNormalization(self)
        self._pad: bool = args.pad_output
        # All work is done on axes in the order others, H, W, C, whatever the layouts are.
        inner = "".join(letter for letter in data.layout if letter not in "HWC") + "HWC"
        self._from_input = tuple(data.layout.index(letter) for letter in inner)
        self._moves_axes = inner != data.layout
        self._from_output = tuple(layout.index(letter) for letter in inner)
        self._order = AxisOrder(data.layout, layout)
        self._rows_out = layout.endswith(("W", "WC"))
        self._pixels_in, self._pixels_out = data.layout.endswith("C"), layout.endswith("C")
        self._fuses = data.layout == "HWC" and layout in ("HWC", "CHW")
        self.chunks_lazy = data.layout == "HWC"
        return data._replace(dtype=dtype, layout=layout)

    def suspect(self, *inputs: Spec) -> str:
        return suspect_moments(self.args.mean, self.args.std, inputs[0].dtype, "std")

    def plan(self, c: PlanContext, data: Samples | LazyBatch) -> Planned:
        extents = data.shapes
        anchors, shapes, outside = self._bounds.plan(*self._window.plan(c, extents), extents)
        channels = shapes[:, self._order.channels]
        fills = {count: self._fill(count) for count in dict.fromkeys(channels.tolist())}
        padded = np.array([len(fills[count]) for count in channels.tolist()], np.int64)
        # Of a window that shows nothing of the data the arguments are not looked at.
        shown = (anchors < extents) & (anchors + shapes > 0) & (shapes > 0) & (extents > 0)
        numbers = self._normalization.plan(c, channels, padded, shown.all(axis=1))
        outs = shapes.copy()
        outs[:, self._order.channels] = padded
        return Planned(outs[:, self._order.out], (anchors, shapes, outside, numbers))

    unplanned = ("mirror",)
    takes = (LazyPixels, StridedRows, StridedBatch, ResizedBatch, WarpedBatch, ColorBatch)

    def cpu(self, c: SampleContext, data: np.ndarray | LazyPixels) -> np.ndarray:
        out = c.out
        self._write(c, data, out)
        return out

    chunks_lazy = True

    chunks_light = True

    def cpu_chunk(self, c: ChunkContext, data: list[LazyImage] | Rows) -> Rows | None:
        anchors, shapes, outside, numbers = c.table
        shapes = np.asarray(shapes, np.int64)
        channels, first = int(shapes[0, -1]), numbers[0]
        is_plain = (
            self._fuses
            and not (self._pad or np.count_nonzero(outside))
            and all(each is first for each in numbers)
            and not np.count_nonzero(shapes[:, -1] != channels)
        )
        if isinstance(data, Rows):
            views = StridedRows.of(data)
            if not is_plain or views is None or not self._kernels.takes(views.dtype, self._dtype):
                return None
            out = c.out()
            views = views.windows(np.asarray(anchors, np.int64), shapes)
            self._normalize_views(c, views, out.addresses, first)
            return out
        out = c.out()
        left: Iterable[int] = range(len(data))
        if is_plain:
            means, factors, _ = self._normalization.coefficients(first, channels)
            left = resample_group(
                c,
                data,
                out,
                windows=(np.asarray(anchors, np.int64), shapes),
                mirrors=[mirror != 0 for mirror in c.values("mirror")],
                normalization=(means, factors),
                planar=not self._pixels_out,
            )
        for k in left:
            c.attempt(k, self._write, data[k], out[k])
        return out

    def _normalize_views(
        self,
        c: ChunkContext,
        views: StridedRows,
        targets: np.ndarray,
        numbers: Any,
    ) -> None:
        """Mirror and normalise images to contiguous memory at these addresses."""
        mirrored = c.flags("mirror")
        if mirrored.any():
            views = views.mirrored(1, mirrored)
        channels = int(views.shapes[0, -1])
        means, factors, _ = self._normalization.coefficients(numbers, channels)
        self._kernels.normalize_rows(
            *(views.origins, views.strides, views.shapes, views.dtype, means, factors),
            *(targets, self._dtype),
            planar=not self._pixels_out,
        )

    compiled_views = True

    compiled_takes = (ResizedColumns,)

    def compiled(
        self, c: CompiledStepContext, data: SampleColumns | ResizedColumns
    ) -> SampleColumns | None:
        from headrace.kernels.cpu import pixel_steps

        pixels = data.pixels if isinstance(data, ResizedColumns) else data
        window = self._window.words(c)
        mirrors = c.number("mirror", self.args.mirror, is_flag=True)
        counts = range(1, pixel_steps.MOST_CHANNELS + 1)
        tables = [self._normalization.constants(count) for count in counts]
        is_known = self._fuses and not self._pad and len(self._bounds.fill) == 1
        is_known = is_known and self._kernels.takes(pixels.dtype, self._dtype)
        if not is_known or window is None or mirrors is None or not any(tables):
            return None
        if isinstance(data, ResizedColumns):
            cut = window if self._window.cut else None
            return data.normalized(c, cut, mirrors, tables, planar=not self._pixels_out)
        if self._window.cut:
            data = compiled_window(c, data, window)
        if self.args.mirror or "mirror" in c.tensors:
            data = compiled_mirror(c, data, [1, 1, *mirrors])
        out = c.out()
        words: list[Word] = [*data.view_words, *out.words[:2], not self._pixels_out]
        for table in tables:
            words += (0, 0, 0, 0) if table is None else table
        carry = pixel_steps.normalizing(data.dtype, out.dtype)
        c.steps.add(pixel_steps.plan, carry, words)
        return out

    def gpu(self, c: BatchContext, data: LazyBatch) -> DeviceBatch:
        planned = plan_batch(self, c, data)
        windows: NormalizedWindows = planned.device
        if windows is None:
            windows = planned.device = self._batch_windows(planned, data)
        out = c.empty(windows.out_extents, self._dtype)
        mirrored = numbers_of(c, "mirror", np.bool_)
        mirror = mirrored if "mirror" in self.tensor_args or mirrored[0] else None
        if isinstance(data, (ResizedBatch, WarpedBatch)):
            if windows.inside and self._pixels_in and self._rows_out:
                windows.resample(c.queue, data, mirror, out)
                return out
            data = data.materialise(c.queue)
        colors = None
        if isinstance(data, ColorBatch):
            colors = data.for_reader() if self._pixels_in else None
            data = data.source if colors is not None else data.materialise(c.queue)
        assert isinstance(data, (DeviceBatch, StridedBatch))
        windows.normalize(c.queue, data, mirror, out, colors)
        return out

    def _batch_windows(self, planned: Planned, data: LazyBatch) -> NormalizedWindows:
        """Windows of a batch's samples that are normalised."""
        anchors, shapes, outside, numbers = planned.table
        extents = shape_rows(data) if len(anchors) < len(data) else as_contiguous(data.shapes)
        channels = shapes[:, self._order.channels]
        fills = {count: self._fill(count) for count in dict.fromkeys(channels.tolist())}
        table = self._normalization.table(numbers, channels, fills)
        made = np.array([len(fills[count]) for count in channels.tolist()], np.int64)
        return NormalizedWindows(
            anchors, shapes, extents, made, self._order, table, inside=not outside.any()
        )

    def _write(self, c: SampleContext, data: np.ndarray | LazyPixels, out: np.ndarray) -> None:
        """Fill `out`, the output of one sample."""
        anchor, shape, outside, numbers = c.row
        mirror = c.args.mirror != 0
        if self._moves_axes:
            anchor = [anchor[axis] for axis in self._from_input]
            shape = [shape[axis] for axis in self._from_input]
        channels = shape[-1]
        fill = self._fill(channels) if outside or self._pad else ()
        target = out.transpose(self._from_output)
        if outside:
            extents = [data.shape[axis] for axis in self._from_input]
            target = _fill_outside(target, anchor, shape, extents, fill, mirror=mirror)
            ends = [min(a + s, e) for a, s, e in zip(anchor, shape, extents, strict=True)]
            anchor = [max(a, 0) for a in anchor]
            shape = [e - a for a, e in zip(anchor, ends, strict=True)]
        if not target.size:
            return
        further = fill[channels:]
        if further and not (self._pixels_in and self._pixels_out):
            target[..., channels:] = further
            target, further = target[..., :channels], ()
        coefficients = self._normalization.coefficients(numbers, channels, further)
        if isinstance(data, np.ndarray):
            source = data.transpose(self._from_input) if self._moves_axes else data
            if tuple(shape) != source.shape:
                index = [slice(a, a + s) for a, s in zip(anchor, shape, strict=True)]
                source = source[tuple(index)]
        elif self._fuses and isinstance(data, ResizedImage):
            means, factors, _ = coefficients
            data.normalized(target, anchor[0], anchor[1], means, factors, mirror=mirror)
            return
        elif isinstance(data, LazyClip):
            with closing(data.cut(anchor, shape).frames()) as frames:
                for frame, places in frames:
                    pixels = frame.pixels()
                    for place in places:
                        source = pixels[:, ::-1] if mirror else pixels
                        self._normalize(source, target[place], coefficients)
            return
        else:
            source = data.cut(anchor, shape).pixels()
        if mirror:
            source = source[..., ::-1, :]
        self._normalize(source, target, coefficients)

    def _normalize(
        self, source: np.ndarray, target: np.ndarray, coefficients: Coefficients
    ) -> None:
        means, factors, planes = coefficients
        if self._pixels_in and source.ndim == 3:
            self._kernel(source, means, factors, target)
            return
        for outer in product(*map(range, source.shape[:-3])):
            given, wanted = source[outer], target[outer]
            if self._pixels_in:
                self._kernel(given, means, factors, wanted)
                continue
            for channel in range(given.shape[2]):
                one = slice(channel, channel + 1)
                self._kernel(given[..., one], *planes[channel], wanted[..., one])

    def _fill(self, channels: int) -> tuple[float, ...]:
        """Value of each channel of the output outside of the data."""
        count = channels
        if self._pad and channels:
            count = 1 << (channels - 1).bit_length()
        if self._bounds.policy != "constant":
            return (0.0,) * count
        fill = self._bounds.fill
        fits = len(fill) == count or (len(fill) <= count and self._normalization.by_channel)
        if len(fill) > 1 and not fits:
            raise ArgumentValueError(
                f"`fill_values` has {len(fill)} values, but the output has {count} channels; give "
                "one value, or one a channel."
            )
        if self._limits is not None:
            low, high = self._limits
            fill = tuple([float(int(min(max(v, low), high))) if v == v else 0.0 for v in fill])
        return fill * count if len(fill) == 1 else (*fill, *(0.0,) * (count - len(fill)))


def _fill_outside(
    target: np.ndarray,
    anchor: Sequence[int],
    shape: Sequence[int],
    extents: Sequence[int],
    fill: tuple[float, ...],
    *,
    mirror: bool,
) -> np.ndarray:
    """Fill what a window does not find in the data; the part of `target` that remains."""
    columns = len(shape) - 2
    for axis in range(len(shape) - 1):
        before = min(max(-anchor[axis], 0), shape[axis])
        after = min(max(anchor[axis] + shape[axis] - extents[axis], 0), shape[axis] - before)
        if mirror and axis == columns:
            before, after = after, before
        end = target.shape[axis] - after
        whole = (slice(None),) * axis
        target[(*whole, slice(0, before))] = fill
        target[(*whole, slice(end, None))] = fill
        target = target[(*whole, slice(before, end))]
    return target
