"""What programs for DALI's operations in graphs of TensorFlow 1 call, and options of datasets."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, NoReturn

import tensorflow as tf

from penstock.errors import NotYetSupportedError
from penstock.to_come import DOCUMENTS

if TYPE_CHECKING:
    from penstock.pipeline import Pipeline


def DALIIterator() -> NoReturn:  # noqa: N802
    """DALI's function that returns `DALIIteratorWrapper`; here it raises an error.

    Raises
    ------
    NotYetSupportedError
        Always: `DALIDataset` is what there is.
    """
    raise _no_operation("DALIIterator")


def DALIIteratorWrapper(*args: Any, **kwargs: Any) -> NoReturn:  # noqa: N802
    """DALI's operation that returns the next batch of a pipeline; here it raises an error.

    Raises
    ------
    NotYetSupportedError
        Always: `DALIDataset` is what there is.
    """
    raise _no_operation("DALIIteratorWrapper")


def DALIRawIterator() -> NoReturn:  # noqa: N802
    """DALI's function that returns the operation of its library; here it raises an error.

    Raises
    ------
    NotYetSupportedError
        Always: `DALIDataset` is what there is.
    """
    raise _no_operation("DALIRawIterator")


def _no_operation(name: str) -> NotYetSupportedError:
    return NotYetSupportedError(
        f"`penstock.plugin.tf.{name}`, an operation for graphs of TensorFlow 1, is not supported. "
        "Use `DALIDataset(pipeline, output_dtypes, output_shapes, batch_size=...)` and iterate "
        "over it; `tf.compat.v1.data.make_one_shot_iterator(dataset).get_next()` gives tensors of "
        f"a graph. See {DOCUMENTS}/tensorflow.md#operations-of-tensorflow-1"
    )


def serialize_pipeline(pipeline: Pipeline) -> bytes:
    """The definition of `pipeline` as bytes: `Pipeline.serialize`, under DALI's name."""
    return pipeline.serialize()


def dataset_options() -> Any:
    """Options for ``Dataset.with_options`` that DALI gives its datasets.

    TensorFlow then neither rewrites the transformations behind a dataset nor tunes its buffers and
    threads. `DALIDataset` does not need them.

    Returns
    -------
    A ``tf.data.Options`` with default optimizations and tuning off.
    """
    options = tf.data.Options()
    options.experimental_optimization.apply_default_optimizations = False
    options.autotune.enabled = False
    return options
