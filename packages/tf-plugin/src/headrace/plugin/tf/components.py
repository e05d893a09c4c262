"""From the outputs of a pipeline to arrays that TensorFlow takes for its tensors, and back.

An output is one component, or, as a ``RaggedTensor``, its values and the row splits of each axis.
"""

from __future__ import annotations

import warnings
from typing import TYPE_CHECKING, Any

import numpy as np
import tensorflow as tf

from headrace.errors import ArgumentValueError, DataTypeError, ShapeError
from headrace.plugin.tf.structure import matching_shape
from headrace.tensors import TensorGPU, TensorListCPU
from headrace.types.dtypes import SIDE_TYPES, storage_dtype

if TYPE_CHECKING:
    from headrace.tensors import TensorListGPU

    Batch = TensorListCPU | TensorListGPU

_LISTED = 3
"""So many of the shapes of a ragged batch are told in an error."""


class Component:
    """One output of the pipeline, as a dense tensor.

    `shape` has the batch axis, and None for extents that vary. With `converts`, values of another
    element type of the same size are converted; otherwise they are an error.
    """

    def __init__(
        self, number: int, dtype: tf.DType, shape: tf.TensorShape, *, converts: bool = False
    ) -> None:
        self.number = number
        self.dtype = dtype
        self.shape = shape
        self.types = [dtype]
        self.shapes = [shape]
        self._converts = converts
        self._has_warned = False
        self._numpy_dtype = np.dtype(dtype.as_numpy_dtype)
        self._required = None if shape.rank is None else tuple(shape.as_list())

    @property
    def spec(self) -> Any:
        """Type spec of this component in the dataset's elements."""
        return tf.TensorSpec(self.shape, self.dtype)

    def arrays(self, batch: Batch, kept: int | list[int]) -> list[np.ndarray]:
        """The kept samples of `batch`: the array, shared, if that is all of a dense batch."""
        chosen = host_batch(chosen_samples(batch, kept))
        self._check_type(chosen)
        try:
            array = chosen.as_array()
        except ShapeError as error:
            raise not_uniform(self.number, batch) from error
        return [self._converted(array).reshape(self._fitting(array.shape))]

    def on_gpu(self, batch: TensorListGPU) -> TensorGPU:
        """The dense tensor of a batch on a GPU, shared."""
        self._check_type(batch)
        try:
            found = batch.as_tensor()
        except ShapeError as error:
            raise not_uniform(self.number, batch) from error
        shape = self._fitting(tuple(found.shape()))
        return TensorGPU._wrap(found._access, found._address, shape, "", found._dtype)

    def empty(self) -> list[np.ndarray]:
        """Arrays without data, that stand for it where an epoch has come to its end."""
        return [np.empty(0, dtype.as_numpy_dtype) for dtype in self.types]

    def value(self, parts: list[Any]) -> Any:
        """The element's part, of the tensors that became of the arrays."""
        return parts[0]

    def has_type_of(self, batch: Batch) -> bool:
        """True if `batch` has the element type that was given."""
        if batch.dtype in SIDE_TYPES:
            return bool(self.dtype == tf.string)
        return not len(batch) or storage_dtype(batch.dtype) == self._numpy_dtype

    def _check_type(self, batch: Batch) -> None:
        if self.has_type_of(batch):
            return
        found = np.dtype(storage_dtype(batch.dtype))
        if not self._converts or found.itemsize != self._numpy_dtype.itemsize:
            raise DataTypeError(
                f"The type provided for output `{self.number}` is not compatible with the type "
                f"returned by the pipeline. Expected (output_dtypes[{self.number}]): "
                f"{self.dtype.name}, got from the pipeline: {found}. Convert it there with "
                "`fn.cast`, or correct `output_dtypes`."
            )

    def _converted(self, array: np.ndarray) -> np.ndarray:
        """`array`, whose element type was checked, in the one that was given."""
        found = array.dtype
        if found == self._numpy_dtype:
            return array
        if not self._has_warned and "f" in (found.kind, self._numpy_dtype.kind):
            self._has_warned = True
            warnings.warn(
                f"`dtypes` has {self.dtype.name} for output {self.number}, which is {found}: its "
                "values are converted. DALI's operation hands over their bits as they are. Correct "
                "`dtypes`, or use `fn.cast` in the pipeline.",
                stacklevel=2,
            )
        with np.errstate(invalid="ignore"):
            return array.astype(self._numpy_dtype)

    def _fitting(self, shape: tuple[int, ...]) -> tuple[int, ...]:
        """`shape` with the axes that were asked for."""
        required = self._required
        if required is None or (
            len(shape) == len(required)
            and all(r is None or r == n for r, n in zip(required, shape, strict=True))
        ):
            return shape
        found = matching_shape(required, shape)
        if found is None:
            raise ShapeError(
                f"The shape provided for output `{self.number}` is not compatible with the shape "
                f"returned by the pipeline. Expected (output_shapes[{self.number}]): "
                f"{list(required)}, got from the pipeline: {list(shape)}. The first axis counts "
                "the samples of a batch; axes of extent 1 may be left out where it is clear which. "
                "None stands for any extent."
            )
        return found


class RaggedComponent(Component):
    """One output of the pipeline, as a ragged tensor of type, shape and `ragged_rank` of `spec`."""

    def __init__(self, number: int, spec: tf.RaggedTensorSpec) -> None:
        shape = spec.shape
        if shape.rank is None or spec.ragged_rank < 1:
            raise ArgumentValueError(
                f"`output_shapes` has {spec} for output {number}; it needs a shape whose rank is "
                "known and at least one ragged axis, such as "
                "`tf.RaggedTensorSpec([None, None], tf.int32, ragged_rank=1)`."
            )
        inner = shape[spec.ragged_rank + 1 :]
        super().__init__(number, spec.dtype, tf.TensorShape([None]).concatenate(inner))
        self._spec = spec
        self._splits = np.dtype(spec.row_splits_dtype.as_numpy_dtype)
        self.types += [spec.row_splits_dtype] * spec.ragged_rank
        self.shapes += [tf.TensorShape([None])] * spec.ragged_rank

    @property
    def spec(self) -> Any:
        """Type spec of this component in the dataset's elements."""
        return self._spec

    def arrays(self, batch: Batch, kept: int | list[int]) -> list[np.ndarray]:
        """Concatenated values of the kept samples of `batch`, and row splits, outer first."""
        chosen = host_batch(chosen_samples(batch, kept))
        self._check_type(chosen)
        depth = self._spec.ragged_rank
        shapes = chosen.shape()
        fixed = tuple(self._spec.shape.as_list()[depth + 1 :])
        for number, shape in enumerate(shapes):
            if len(shape) != self._spec.shape.rank - 1 or any(
                f not in (None, n) for f, n in zip(fixed, shape[depth:], strict=True)
            ):
                raise ShapeError(
                    f"Sample {number} of output `{self.number}` has the shape {shape}; `output_"
                    f"shapes` says {self._spec}, whose first axis counts the samples of a batch."
                )
        rows = [
            np.asarray(chosen[i]).reshape(int(np.prod(s[:depth])), *s[depth:])
            for i, s in enumerate(shapes)
        ]
        none = np.empty((0, *(f or 0 for f in fixed)), self._numpy_dtype)
        values = np.concatenate(rows) if rows else none
        splits = []
        counts = np.ones(len(shapes), np.int64)  # of rows of each sample, axis by axis
        for axis in range(depth):
            extents = np.array([s[axis] for s in shapes], np.int64)
            lengths = np.repeat(extents, counts)
            splits.append(np.concatenate([[0], np.cumsum(lengths)]).astype(self._splits))
            counts = counts * extents
        return [values, *splits]

    def value(self, parts: list[Any]) -> Any:
        """The ragged tensor."""
        return tf.RaggedTensor.from_nested_row_splits(parts[0], parts[1:], validate=False)


class SparseComponent(Component):
    """One output of the pipeline, as a sparse tensor that has every element of every sample."""

    def __init__(self, number: int, dtype: tf.DType, *, converts: bool = False) -> None:
        super().__init__(number, dtype, tf.TensorShape(None), converts=converts)
        self.types = [tf.int64, dtype, tf.int64]
        self.shapes = [
            tf.TensorShape([None, None]),
            tf.TensorShape([None]),
            tf.TensorShape([None]),
        ]

    def arrays(self, batch: Batch, kept: int | list[int]) -> list[np.ndarray]:
        """Places of the elements, their values, and the extents of the smallest box around them."""
        chosen = host_batch(chosen_samples(batch, kept))
        self._check_type(chosen)
        shapes = np.array(chosen.shape(), np.int64).reshape(len(chosen), chosen.ndim())
        counts = shapes.prod(axis=1)
        places = [
            np.concatenate([np.full((1, n), i), np.indices(shape).reshape(len(shape), n)])
            for i, (shape, n) in enumerate(zip(shapes.tolist(), counts.tolist(), strict=True))
        ]
        values = [np.asarray(sample).ravel() for sample in chosen]
        return [
            np.concatenate(places, axis=1).T.astype(np.int64),
            self._converted(np.concatenate(values)),
            np.array([len(shapes), *shapes.max(axis=0)], np.int64),
        ]

    def value(self, parts: list[Any]) -> Any:
        """The sparse tensor."""
        return tf.SparseTensor(*parts)


def not_uniform(number: int, batch: Batch) -> ShapeError:
    """The error where output `number` is to be a dense tensor and cannot."""
    shapes = list(dict.fromkeys(batch.shape()))
    listed = ", ".join(map(str, shapes[:_LISTED])) + (", ..." if shapes[_LISTED:] else "")
    return ShapeError(
        f"Batch output at index '{number}' from the pipeline is not uniform: individual samples "
        f"have different shapes ({listed}), and a dense tensor needs one. Pad or resize them in "
        "the pipeline (`fn.pad`, `fn.resize`, `fn.crop`), or ask `DALIDataset` for a ragged "
        "tensor: `output_shapes` with a `tf.RaggedTensorSpec` here."
    )


def chosen_samples(batch: Batch, kept: int | list[int]) -> Batch:
    """That many samples of `batch` from the front, or those with these numbers."""
    if not isinstance(kept, int):
        return batch[:0] if not kept else type(batch)([batch[i] for i in kept], contiguous=False)
    return batch[:kept] if kept < len(batch) else batch


def host_batch(batch: Batch) -> TensorListCPU:
    """The batch in memory of the host, for TensorFlow's data sets, which are there."""
    return batch if isinstance(batch, TensorListCPU) else batch.as_cpu()


def make_component(number: int, dtype: Any, shape: Any, example: Batch | None) -> Component:
    """Make the component of output `number` from the user's `dtype` and `shape`; where one is None,
    from a batch, `example`.
    """
    if isinstance(shape, tf.RaggedTensorSpec):
        if dtype not in (None, shape.dtype):
            raise ArgumentValueError(
                f"`output_dtypes` has {dtype.name} for output {number}, and `output_shapes` "
                f"{shape}: give the same type in both, or leave the first out."
            )
        return RaggedComponent(number, shape)
    if dtype is None:
        assert example is not None
        dtype = tf.as_dtype(storage_dtype(example.dtype))
    if shape is None:
        assert example is not None
        shape = tf.TensorShape([None] * (1 + example.ndim()))
    return Component(number, dtype, shape)
