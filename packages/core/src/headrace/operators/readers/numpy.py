"""`readers.numpy`: arrays in files of NumPy."""

from __future__ import annotations

import contextlib
from types import SimpleNamespace
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import BadSampleError
from headrace.kernels.cpu import npy
from headrace.kernels.cpu.cast import converter
from headrace.kernels.cpu.pad import pad_window
from headrace.operators.readers.base import Reader, reader
from headrace.operators.readers.index import FileIndex, Index
from headrace.operators.readers.listing import named_file_args, named_files
from headrace.operators.readers.storage import join, read_file
from headrace.operators.support.argument_types import (
    BoolArg,
    FloatArg,
    FloatListArg,
    IntListArg,
    StringArg,
)
from headrace.operators.support.operator import SampleContext
from headrace.operators.support.planning import PlanContext, Planned, Samples
from headrace.operators.support.rules import at_most_one
from headrace.operators.support.schema import Arg, Spec
from headrace.operators.support.windows.arguments import OutOfBounds, SliceWindow, slices

if TYPE_CHECKING:
    from numpy.typing import DTypeLike

_WINDOW = ("start", "rel_start", "end", "rel_end", "shape", "rel_shape")
"""Arguments of `slice` that the reader has, too."""


def _named(name: str) -> str:
    return f"rel_roi_{name[4:]}" if name.startswith("rel_") else f"roi_{name}"


def _window_arg(name: str, what: str) -> Arg:
    relative = name.startswith("rel_")
    return Arg(
        _named(name),
        FloatListArg if relative else IntListArg,
        None,
        f"{what} of the region to read, "
        f"{'as fractions of the extents' if relative else 'in elements'}.",
        per_sample=True,
    )


@reader(
    "readers.numpy",
    old_names=("numpy_reader",),
    devices=("cpu", "gpu"),
    args=(
        *named_file_args("*.npy"),
        *(
            _window_arg(name, what)
            for name, what in zip(
                _WINDOW, [w for w in ("Begin", "End", "Extents") for _ in "ab"], strict=True
            )
        ),
        Arg(
            "roi_axes",
            IntListArg,
            (),
            "Axes that the region is given for; negative ones count from the last. All if empty.",
        ),
        Arg(
            "out_of_bounds_policy",
            StringArg,
            "error",
            'Treatment of a region that leaves the array: ``"error"`` raises, ``"pad"`` fills '
            'with `fill_value`, ``"trim_to_shape"`` shrinks the region.',
            choices=("error", "pad", "trim_to_shape"),
        ),
        Arg("fill_value", FloatArg, 0.0, "Value outside of an array."),
        Arg(
            "cache_header_information",
            BoolArg,
            False,
            "Keep headers of files; they are in any case.",
            hint=True,
        ),
        Arg("register_buffers", BoolArg, True, "Register memory with the driver.", hint=True),
        Arg("use_o_direct", BoolArg, False, "Bypass the cache of the system.", hint=True),
    ),
    rules=tuple(
        at_most_one(*map(_named, names), said="These arguments are mutually exclusive.")
        for names in (_WINDOW[:2], _WINDOW[2:])
    ),
    output_docs=("The array, or its region, without a layout.",),
)
class NumpyReader(Reader):
    """Reads arrays from files of NumPy (.npy), of one element type and number of axes.

    Names may be addresses such as ``s3://bucket/folder``, which are read through fsspec.

    Examples
    --------
    >>> volumes = fn.readers.numpy(file_root="scans", random_shuffle=True)
    >>> rows = fn.readers.numpy(file_root="scans", roi_start=[10], roi_end=[20], roi_axes=[0])
    """

    plans_values = True

    def list_entries(self) -> Index:
        root, names = named_files(self.args)
        self._header = self._first_header([join(root, name) for name in names])
        return FileIndex(names, root=root)

    def _first_header(self, paths: list[str]) -> npy.NpyHeader:
        """That of the first file that has one; any if none has, which is told when it is read."""
        for path in paths:
            with contextlib.suppress(BadSampleError):
                size = npy.header_size(read_file(path, np.empty, 0, npy.PREFIX).tobytes())
                return npy.parse_header(read_file(path, np.empty, 0, size).tobytes())
        usual = np.dtype(np.float32)
        return npy.NpyHeader(usual, usual, (0,), False, 0, 0)

    def infer(self, *data: Spec) -> Spec:
        args, header = self.args, self._header
        spec = Spec(header.kind, len(header.shape))
        known = {name: getattr(args, _named(name)) for name in _WINDOW}
        self._shim = SimpleNamespace(
            args=SimpleNamespace(
                **known,
                axes=args.roi_axes,
                axis_names=None,
                out_of_bounds_policy=args.out_of_bounds_policy,
                fill_values=(args.fill_value,),
            ),
            tensor_args={n: None for n in _WINDOW if _named(n) in self.tensor_args},
            given=lambda name: name in known and self.given(_named(name)),
        )
        """The arguments under the names that `slice` has for them."""
        self._whole = not any(map(self._shim.given, _WINDOW))
        self._bounds = OutOfBounds(self._shim)  # type: ignore[arg-type]
        if not self._whole:
            self._window = SliceWindow(self._shim, spec)  # type: ignore[arg-type]
        self._fill = np.empty(1, header.dtype)
        converter(np.dtype(np.float32), header.dtype)(
            np.array([args.fill_value], np.float32), self._fill
        )
        return spec

    def plan(self, c: PlanContext, *data: Samples) -> Planned:
        headers = [npy.header_of(row) for row in data[0].rows]
        usual = self._header
        for header in headers:
            if header.dtype != usual.dtype or len(header.shape) != len(usual.shape):
                raise BadSampleError(
                    "Inconsistent data: all files must have the same element type and number of "
                    f"dimensions, but the first has {usual.dtype} and {len(usual.shape)}, this one "
                    f"{header.dtype} and {len(header.shape)}. `fn.readers.file` and "
                    "`fn.decoders.numpy` read others."
                )
        extents = np.array([header.shape for header in headers], np.int64)
        extents = extents.reshape(len(headers), len(usual.shape))
        if self._whole:
            anchors, shapes = np.zeros_like(extents), extents
        else:
            anchors, shapes = self._window.plan(_Renamed(c, self._shim.args), extents)  # type: ignore[arg-type]
        anchors, shapes, outside = self._bounds.plan(anchors, shapes, extents)
        return Planned(shapes, (headers, anchors, outside))

    def cpu(self, c: SampleContext, *data: np.ndarray) -> np.ndarray:
        header, anchor, outside = c.row
        array: np.ndarray = header.array(data[0])
        if not outside:
            return array[slices(anchor, c.shape)]
        out = c.out
        pad_window(array, anchor, out, policy=self._bounds.policy, fill=self._fill)
        return out


class _Renamed:
    """A `PlanContext` whose arguments have the names that `slice` has for them."""

    def __init__(self, c: PlanContext, args: Any) -> None:
        self._c = c
        self.args = args

    def array(self, name: str, dtype: DTypeLike) -> np.ndarray | None:
        return self._c.array(_named(name), dtype)
