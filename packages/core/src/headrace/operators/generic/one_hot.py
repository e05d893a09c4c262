"""`one_hot`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import (
    ArgumentValueError,
    LayoutError,
    ShapeError,
)
from headrace.kernels.cpu import one_hot as _cpu
from headrace.kernels.cpu.fill import fill_of_type
from headrace.kernels.gpu import one_hot as _gpu
from headrace.operators.support.argument_types import DataTypeArg, FloatArg, IntArg, StringArg
from headrace.operators.support.operator import (
    BatchContext,
    BatchOperator,
    ChunkContext,
    Operator,
    SampleOperator,
    operator,
)
from headrace.operators.support.runtime_typed_batch import RuntimeTypedBatch
from headrace.operators.support.schema import Arg, Input, Spec, data_types
from headrace.tensors.gpu.batch import volumes
from headrace.tensors.rows import Rows
from headrace.types import DALIDataType, to_numpy_type

if TYPE_CHECKING:
    from headrace.tensors.gpu.batch import DeviceBatch


def _is_named_late(args: dict[str, Any]) -> bool:
    """True if what the name of the new axis stands beside depends on the batch."""
    return args.get("axis") is None and args.get("axis_name") is not None


_TYPES = data_types("UINT8 UINT16 UINT32 UINT64 INT8 INT16 INT32 INT64 FLOAT FLOAT64")


@operator(
    "one_hot",
    inputs=Input("labels", "Numbers of classes, of any shape.", dtypes=_TYPES),
    args=(
        Arg("num_classes", IntArg, 0, "Number of classes: extent of the new axis."),
        Arg(
            "axis",
            IntArg,
            None,
            "Place of the new axis; -1 puts it after all others. Not given, that is where it is, "
            "but it is the only one where all samples of the batch have a single element.",
        ),
        Arg(
            "axis_name",
            StringArg,
            None,
            "Letter of the new axis in the output's layout, which has none without it.",
        ),
        Arg(
            *("dtype", DataTypeArg, DALIDataType.FLOAT, "Element type of the output."),
            choices=_TYPES,
            said="Unsupported output type: {}",
            late=True,
        ),
        Arg("on_value", FloatArg, 1.0, "Value for the class of a label."),
        Arg("off_value", FloatArg, 0.0, "Value for all other classes."),
    ),
    output_docs=("The vectors, along a new axis.",),
    data_dependent_type=_is_named_late,
)
class OneHot(SampleOperator):
    """Makes a vector of each label, with one value for its class and another one elsewhere.

    Labels that are no class, such as negative ones, give vectors without one. `on_value` and
    `off_value` are converted to `dtype` as in C: fractions are dropped.

    Examples
    --------
    >>> targets = fn.one_hot(labels, num_classes=1000)
    """

    @classmethod
    def for_arguments(cls, args: dict[str, Any]) -> type[Operator]:
        """Without `axis`, other samples of the batch have a say in the number of axes."""
        if _is_named_late(args):
            return NamedOneHot
        return BatchOneHot if args.get("axis") is None else cls

    chunked = True

    def check_constants(self) -> None:
        name = self.args.axis_name
        if name is not None and len(name) != 1:
            raise LayoutError(
                f'Unsupported axis_name value: it must be a single character, got "{name}".'
            )

    def infer(self, labels: Spec) -> Spec:
        args = self.args
        if args.num_classes < 0:
            raise ArgumentValueError(f"`num_classes` must not be negative, got {args.num_classes}.")
        self.dtype = np.dtype(to_numpy_type(args.dtype))
        self.off = fill_of_type([args.off_value], self.dtype)
        self.on = fill_of_type([args.on_value], self.dtype)
        if labels.ndim is None:
            return Spec(args.dtype, None)
        axis = self.axis_of(labels.ndim)
        name = args.axis_name
        self.layout, named = labels.layout, name is not None and labels.ndim > 0
        if named and args.axis is not None:
            self._check_layout()
        layout = "" if name is None else f"{labels.layout[:axis]}{name}{labels.layout[axis:]}"
        return Spec(args.dtype, labels.ndim + 1, layout)

    def _check_layout(self) -> None:
        """Check that the input has a layout that a name can be added to."""
        if not self.layout:
            raise LayoutError(
                "Input layout mismatch: naming the new axis with `axis_name` requires that the "
                "input has a layout; `fn.reshape(layout=...)` sets it."
            )

    def axis_of(self, ndim: int) -> int:
        """The new axis counted from the front."""
        axis: int = -1 if self.args.axis is None else self.args.axis
        if not -1 <= axis <= ndim:
            raise ShapeError(
                f"`axis` is outside of the allowed range: got {axis}, and for {ndim}-D data it may "
                f"be -1 to {ndim}."
            )
        return ndim if axis < 0 else axis

    def shapes(self, labels: np.ndarray, *, single: bool) -> tuple[np.ndarray, np.ndarray]:
        """Shapes of outputs ``(samples, ndim)``, and how many elements lie between classes."""
        count, ndim = labels.shape
        if single:
            return np.full((count, 1), self.args.num_classes, np.int64), np.ones(count, np.int64)
        axis = self.axis_of(ndim)
        return np.insert(labels, axis, self.args.num_classes, axis=1), volumes(labels[:, axis:])

    def cpu_chunk(self, c: ChunkContext, labels: Rows, single: Sequence[Any] = (False,)) -> Rows:
        extents = labels.shapes
        shapes, inner = self.shapes(extents, single=bool(single[0]))
        out = c.empty(shapes, self.dtype)
        assert out.flat is not None
        values = labels.dense
        numbers = [_cpu.class_numbers(row) for row in (labels if values is None else [values])]
        word = f"u{self.dtype.itemsize}"
        _cpu.set_classes(
            np.concatenate(numbers),
            volumes(extents),
            inner,
            self.args.num_classes,
            self.off.view(word),
            self.on.view(word),
            out.flat.view(word),
            out.begins,
        )
        return out

    def gpu(self, c: BatchContext, labels: DeviceBatch) -> DeviceBatch:
        extents = labels.shapes
        single = self.args.axis is None and bool((labels.sizes() == 1).all())
        shapes, inner = self.shapes(extents, single=single)
        out = c.empty(shapes, self.dtype)
        _gpu.set_classes(c.queue, labels, inner, self.args.num_classes, self.off, self.on, out)
        return out


class BatchOneHot(BatchOperator, OneHot):
    """Vectors of labels whose number of axes depends on the batch."""

    chunked = True

    def infer(self, labels: Spec) -> Spec:
        found = super().infer(labels)
        return found if labels.ndim == 0 else found._replace(ndim=None)

    def reduce(self, c: Any, labels: Rows) -> np.ndarray:
        """True if all samples have a single element."""
        return np.array((labels.sizes == 1).all())

    apply = OneHot.cpu_chunk


class NamedOneHot(BatchOperator, OneHot):
    """Vectors of labels whose number of axes, and so their layout, depends on the batch."""

    def infer(self, labels: Spec) -> Spec:
        return super().infer(labels)._replace(ndim=None, layout="")

    def _spec(self, ndim: int, *, single: bool) -> Spec:
        """The type of the output for labels of `ndim` axes."""
        if single or not ndim:
            return Spec(self.args.dtype, 1, self.args.axis_name)
        self._check_layout()
        return Spec(self.args.dtype, ndim + 1, self.layout + self.args.axis_name)

    def cpu(self, c: Any, samples: Sequence[np.ndarray]) -> None:
        labels = Rows(list(samples))
        single = bool((labels.sizes == 1).all())
        c.declare(self._spec(samples[0].ndim, single=single))
        shapes, inner = self.shapes(labels.shapes, single=single)
        word = f"u{self.dtype.itemsize}"
        for k, row in enumerate(samples):
            out = c.empty(k, tuple(shapes[k].tolist()), self.dtype)
            _cpu.set_classes(
                _cpu.class_numbers(row),
                volumes(labels.shapes[k : k + 1]),
                inner[k : k + 1],
                self.args.num_classes,
                self.off.view(word),
                self.on.view(word),
                out.reshape(-1).view(word),
                np.zeros(1, np.int64),
            )

    def gpu(self, c: BatchContext, labels: DeviceBatch) -> RuntimeTypedBatch:  # type: ignore[override]
        single = bool((labels.sizes() == 1).all())
        return RuntimeTypedBatch(
            super().gpu(c, labels), self._spec(labels.shapes.shape[1], single=single)
        )
