"""Shared steps of `crop` and `slice` once their window is known: a view, a conversion or a
padding.
"""

from __future__ import annotations

import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import numpy as np

from headrace.errors import DataTypeError, LayoutError, ShapeError, UsageError
from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.fill import fill_of_type
from headrace.kernels.cpu.pad import pad_signals, pad_window
from headrace.kernels.gpu import window as _window_kernels
from headrace.operators.support.argument_types import DataTypeArg, ImageTypeArg
from headrace.operators.support.lazy_image import LazyPixels
from headrace.operators.support.planning import Planned
from headrace.operators.support.schema import Arg
from headrace.operators.support.windows.arguments import OutOfBounds, slices
from headrace.operators.support.windows.partial_batch import partial_batch, strided_batch
from headrace.tensors.gpu.batch import DeviceBatch, LazyBatch, StridedBatch, shape_rows
from headrace.tensors.gpu.traced import told
from headrace.tensors.rows import Rows
from headrace.tensors.strided_rows import StridedRows
from headrace.types import DALIDataType, to_numpy_type

if TYPE_CHECKING:
    from headrace.operators.support.compiled_steps import (
        CompiledStepContext,
        SampleColumns,
        WindowWords,
        Word,
    )
    from headrace.operators.support.operator import (
        BatchContext,
        ChunkContext,
        Operator,
        SampleContext,
    )
    from headrace.operators.support.schema import Spec
CUT_DTYPE_ARGS: tuple[Arg, ...] = (
    Arg(
        "dtype",
        DataTypeArg,
        None,
        "Element type of the output: `FLOAT`, `FLOAT16`, `UINT8` or that of the input, which is "
        "the default. Fractions are dropped and values that do not fit saturate.",
    ),
    Arg("output_dtype", DataTypeArg, None, "The old name of `dtype`.", deprecated="dtype"),
    Arg("image_type", ImageTypeArg, None, "Has no effect any more.", deprecated=""),
)

_CONVERTIBLE = (DALIDataType.FLOAT, DALIDataType.FLOAT16, DALIDataType.UINT8)


class Cutter:
    """Cuts windows out of samples; resolved in `infer`, used by all threads.

    `dtype`: element type of the output. `are_signals`: whether samples have a single axis, and
    elements stay as they are.
    """

    __slots__ = (
        "_bounds",
        "_channel_axis",
        "_convert",
        "_fill",
        "_numpy_type",
        "are_signals",
        "dtype",
    )

    def __init__(self, op: Operator, data: Spec) -> None:
        args = op.args
        if args.dtype is not None and args.output_dtype is not None:
            raise UsageError("`output_dtype` is the old name of `dtype`; give only `dtype`.")
        wanted = args.dtype if args.dtype is not None else args.output_dtype
        self.dtype: DALIDataType = data.dtype if wanted is None else wanted
        if self.dtype != data.dtype and self.dtype not in _CONVERTIBLE:
            allowed = ", ".join(t.name for t in _CONVERTIBLE)
            raise DataTypeError(
                f"`dtype` must be {allowed} or the input's {data.dtype.name}, got "
                f"{self.dtype.name}. Use `fn.cast` for other types."
            )
        self._numpy_type = np.dtype(to_numpy_type(self.dtype))
        source = np.dtype(to_numpy_type(data.dtype))
        self._convert = (
            None
            if self._numpy_type == source
            else converter(source, self._numpy_type, rounded=False)
        )
        self.are_signals = data.ndim == 1 and self._convert is None
        self._bounds = OutOfBounds(op)
        self._fill = fill_of_type(self._bounds.fill, self._numpy_type)
        self._channel_axis = 0
        if len(self._fill) > 1 and self._bounds.policy == "constant":
            # Without any layout the innermost axis is taken for the channels.
            self._channel_axis = data.layout.find("C") if data.layout else -1
            if data.layout and self._channel_axis < 0:
                raise LayoutError(
                    f"`fill_values` has {len(self._fill)} values, one a channel, but the layout "
                    f'"{data.layout}" has no channels (C). Give a single value.'
                )

    def plan(self, extents: np.ndarray, anchors: np.ndarray, shapes: np.ndarray) -> Planned:
        """The plan of windows in samples of these extents; int64 ``(samples, ndim)`` all."""
        anchors, shapes, outside = self._bounds.plan(anchors, shapes, extents)
        if len(self._fill) > 1 and self._bounds.policy == "constant":
            wrong = outside & (shapes[:, self._channel_axis] != len(self._fill))
            if wrong.any():
                raise ShapeError(
                    f"`fill_values` has {len(self._fill)} values, one a channel, but the output "
                    f"has {shapes[int(wrong.argmax()), self._channel_axis]} channels."
                )
        return Planned(shapes, (anchors, outside))

    def cut(self, c: SampleContext, data: np.ndarray | LazyPixels) -> np.ndarray | LazyPixels:
        """The window of `data`: a view of an array, or a lazy window of lazy pixels, where
        nothing has to be computed.
        """
        anchor, outside = c.row
        shape = c.shape
        if outside:
            return self._padded(c, data, anchor, shape)
        if isinstance(data, np.ndarray):
            view = data if shape == data.shape else data[slices(anchor, shape)]
        elif 0 in shape:
            return c.out
        else:
            window = data if shape[:-1] == data.shape[:-1] else data.cut(anchor, shape)
            whole = shape[-1] == data.shape[-1]
            if whole and self._convert is None:
                return window
            view = window.pixels()
            if not whole:
                view = view[..., anchor[-1] : anchor[-1] + shape[-1]]
        if self._convert is None:
            return view
        out = c.out
        self._convert(view, out)
        return out

    def cut_rows(self, c: ChunkContext, data: Rows) -> Rows | None:
        """The windows of samples as views; `None` where something is to be computed."""
        anchors, outside = c.table
        if self._convert is not None or np.count_nonzero(outside):
            return None
        views = StridedRows.of(data)
        if views is None:
            return None
        shapes = c.shapes
        if np.array_equal(shapes, data.shapes):
            return data
        return views.windows(np.asarray(anchors, np.int64), shapes)

    def cut_signals(self, c: ChunkContext, data: Rows) -> Rows:
        """The windows of signals.

        Several of one length are copied, side by side, so that further operators do all of them in
        one call. Others are views where none reaches beyond its signal.
        """
        anchors, outside = c.table
        anchors = np.asarray(anchors, np.int64)[:, 0]
        inside = not any(outside)
        lengths = c.shapes[:, 0]
        if inside and (len(lengths) == 1 or np.count_nonzero(lengths != lengths[0])):
            return data.window(anchors, lengths)
        out = c.out()
        if inside or self._bounds.policy == "constant":
            pad_signals(data, anchors, out, self._fill)
            return out
        for signal, anchor, own in zip(data, anchors.tolist(), out, strict=True):
            pad_window(signal, (anchor,), own, policy=self._bounds.policy)
        return out

    def compiled(
        self, c: CompiledStepContext, data: SampleColumns, window: WindowWords | None
    ) -> SampleColumns | None:
        """The instruction for windows that these words tell."""
        if window is None or self._convert is not None:
            return None
        if self._bounds.policy != "constant":  # samples that leave are for the other way
            return compiled_window(c, data, window, leaves=c.leaves[0])
        if len(self._fill) > 1:
            return None
        fill = int.from_bytes(self._fill[:1].tobytes(), sys.byteorder, signed=True)
        return compiled_window(c, data, window, leaves=c.leaves[0], fill=fill)

    def cut_batch(self, c: BatchContext, data: LazyBatch, planned: Planned) -> LazyBatch:
        """The windows of a batch: views of it where possible.

        The plan has a row a sample, or one for samples that are all alike.
        """
        (shapes,), (anchors, outside) = planned.shapes, planned.table
        extents = data.shapes if len(anchors) == len(data) else shape_rows(data)
        leaves, is_whole = _what_is_seen(shapes, extents, outside)
        if self._convert is None and not leaves:
            if is_whole:
                return data
            if isinstance(data, DeviceBatch) and data.ndim == 1:
                return data.run(anchors[:, 0], shapes)
            return partial_batch(c, data).window(anchors, shapes)
        if len(anchors) < len(data):
            extents = data.shapes
            anchors, shapes = (np.broadcast_to(a, extents.shape) for a in (anchors, shapes))
            outside = np.broadcast_to(outside, len(data))
        policy = self._bounds.policy if leaves else "constant"
        if policy == "constant" and not isinstance(data, (DeviceBatch, StridedBatch)):
            first = np.clip(anchors, 0, extents)
            last = np.clip(anchors + shapes, first, extents)
            # A lazy batch makes no more of the data than is seen of it.
            data = partial_batch(c, data).window(first, last - first)
            anchors = anchors - first
        out = c.empty(shapes, self._numpy_type)
        _window_kernels.window(
            c.queue,
            strided_batch(c, data),
            anchors,
            out,
            policy=policy,
            fill=self._fill if leaves else None,
            fill_axis=self._channel_axis % max(data.ndim, 1),
        )
        return out

    def _padded(
        self,
        c: SampleContext,
        data: np.ndarray | LazyPixels,
        anchor: Sequence[int],
        shape: tuple[int, ...],
    ) -> np.ndarray:
        if not isinstance(data, np.ndarray):
            if self._bounds.policy == "constant":
                data, anchor = _needed(data, anchor, shape)
            else:
                data = data.pixels()
        out = c.out
        fill = None
        if self._bounds.policy == "constant":
            fill = self._fill_for(len(shape))
        pad_window(data, anchor, out, policy=self._bounds.policy, fill=fill, move=self._convert)
        return out

    def _fill_for(self, ndim: int) -> np.ndarray:
        fill = self._fill
        if len(fill) == 1:
            return fill
        extents = [1] * ndim
        extents[self._channel_axis] = len(fill)
        return fill.reshape(extents)


def compiled_window(
    c: CompiledStepContext,
    data: SampleColumns,
    window: WindowWords,
    *,
    leaves: bool = False,
    fill: int | None = None,
) -> SampleColumns:
    """The instruction for windows: views that, with the bits of an element to `fill` with, may
    reach beyond samples. Those that leave the loop are copied.
    """
    from headrace.kernels.cpu import window_steps

    out = c.out() if leaves else c.view(data, placed=fill is not None)
    plan = window_steps.plan_crop if window.is_crop else window_steps.plan_slice
    places = *out.words[:2], out.strides, c.steps.take(data.ndim)
    c.steps.add(
        plan,
        window_steps.carry if leaves or fill is not None else window_steps.carry_view,
        (*data.view_words, *places, fill is not None, leaves, fill or 0, *window.words),
    )
    return out


def planned_window(
    c: CompiledStepContext, data: SampleColumns, window: WindowWords
) -> tuple[int, int]:
    """The instruction that finds windows within samples, and cuts none: the first columns of
    their anchors and of their extents.
    """
    from headrace.kernels.cpu import step_loops, window_steps

    plan = window_steps.plan_crop if window.is_crop else window_steps.plan_slice
    anchors, extents = c.steps.take(data.ndim), c.steps.take(data.ndim)
    places = -1, extents, -1, anchors
    c.steps.add(
        plan, step_loops.carry_nothing, (*data.view_words, *places, False, False, 0, *window.words)
    )
    return anchors, extents


def compiled_mirror(
    c: CompiledStepContext, data: SampleColumns, words: Sequence[Word]
) -> SampleColumns:
    """The instruction for mirror images, views: see `headrace.kernels.cpu.view_steps`."""
    from headrace.kernels.cpu import view_steps

    out = c.view(data)
    places = *out.words[:2], out.strides
    c.steps.add(
        view_steps.plan_mirrored,
        view_steps.carry_mirrored,
        (*data.view_words, *places, *words),
    )
    return out


@told
def _what_is_seen(
    shapes: np.ndarray, extents: np.ndarray, outside: np.ndarray
) -> tuple[bool, bool]:
    """Tell whether some window leaves its sample, and whether windows are all of the samples."""
    if outside.any():
        return True, False
    if len(shapes) and shapes[0].tolist() != extents[0].tolist():  # as for most batches
        return False, False
    return False, bool((shapes == extents).all())


def _needed(
    data: LazyPixels, anchor: Sequence[int], shape: tuple[int, ...]
) -> tuple[np.ndarray, tuple[int, ...]]:
    """The part of `data` that a window shows, and the window's anchor in it."""
    extents = data.shape[:-1]
    first = [max(a, 0) for a in anchor[:-1]]
    ends = [min(a + s, e) for a, s, e in zip(anchor, shape, extents, strict=False)]
    if any(begin >= end for begin, end in zip(first, ends, strict=True)):
        return np.empty((*[0] * len(extents), data.shape[-1]), data.dtype), (
            *[0] * len(extents),
            anchor[-1],
        )
    part = data.cut(first, [end - begin for begin, end in zip(first, ends, strict=True)])
    return part.pixels(), (*[a - f for a, f in zip(anchor, first, strict=False)], anchor[-1])
