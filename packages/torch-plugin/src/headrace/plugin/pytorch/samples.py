"""Samples of PyTorch datasets, taken apart into the outputs of an external source."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from typing import Any

import numpy as np
import torch

from headrace.errors import ArgumentTypeError, OutOfRangeError
from headrace.executor.sources.process_worker import in_worker_process

Fields = str | int | Sequence[str | int] | None


def columns(samples: list[Any], fields: Fields) -> Any:
    """The samples of a batch, not collated: a list, or a tuple of one list for each output."""
    if isinstance(fields, (str, int)):
        return [_field(sample, fields) for sample in samples]
    if fields is not None:
        return tuple([_field(sample, field) for sample in samples] for field in fields)
    first = samples[0]
    if isinstance(first, dict):
        raise ArgumentTypeError(
            f"The dataset has dictionaries with the keys {', '.join(map(repr, first))}: say with "
            '`fields` which of them are wanted, such as fields=("image", "label").'
        )
    if not isinstance(first, (tuple, list)):
        return samples
    if any(len(sample) != len(first) for sample in samples):
        raise ArgumentTypeError(
            f"The samples of the dataset have {sorted({len(s) for s in samples})} elements; they "
            "must all have as many, or `fields` must name those that are wanted."
        )
    return tuple([sample[k] for sample in samples] for k in range(len(first)))


def _field(sample: Any, field: str | int) -> Any:
    try:
        if isinstance(field, str) and not hasattr(sample, "keys"):
            return getattr(sample, field)  # named tuples and data classes
        return sample[field]
    except (AttributeError, IndexError, KeyError, TypeError) as error:
        known = list(sample) if hasattr(sample, "keys") else type(sample).__name__
        raise OutOfRangeError(
            f"A sample of the dataset has no {field!r}: it has {known}."
        ) from error


def prepare_process(*seed: int) -> None:
    """In a worker process, give PyTorch one thread and all global generators a state that depends
    on `seed` only.

    Which worker makes a batch then changes nothing, and no two batches draw the same numbers. In
    the main process and in its threads the generators are the user's own and left alone.
    """
    if not in_worker_process():
        return
    torch.set_num_threads(1)  # as PyTorch's own workers; its threads did not survive the fork
    _begin_generators(seed)


@contextmanager
def own_generators(*seed: int) -> Iterator[None]:
    """Have all global generators of the host depend on `seed` only, and be as before after it."""
    before = random.getstate(), np.random.get_state(), torch.get_rng_state()  # noqa: NPY002
    try:
        _begin_generators(seed)
        yield
    finally:
        random.setstate(before[0])
        np.random.set_state(before[1])  # noqa: NPY002
        torch.set_rng_state(before[2])


def _begin_generators(seed: Sequence[int]) -> None:
    words = np.random.SeedSequence(list(seed)).generate_state(2)
    random.seed(int(words[0]))
    np.random.seed(int(words[0]))  # noqa: NPY002 - what datasets draw from
    torch.default_generator.manual_seed(int(words[1]))
