"""`CachedFunction`: a function of samples whose results are kept."""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from os import fspath
from typing import Any

import numpy as np

from headrace._version import __version__
from headrace.config import DECODER
from headrace.errors import (
    ArgumentTypeError,
    ArgumentValueError,
    MisusedArgumentError,
    NotYetSupportedError,
)
from headrace.experimental.dynamic.calling import TensorHandle, as_tensor, handle_of
from headrace.experimental.dynamic.modes import THREAD
from headrace.experimental.dynamic.reading import own_row
from headrace.experimental.dynamic.values import HostValue, ValueReference
from headrace.graph.user_line import user_line
from headrace.operators.cache.store import Found, Store
from headrace.tracebacks import public_methods
from headrace.types import storage_dtype

_STAMP = 0, 0, 0
"""Keys are of contents, which do not change."""


@public_methods
class CachedFunction:
    """A function of samples, called only for those whose result is not kept yet.

    What `fn.cache` is for pipelines. Samples are known again by their contents, all bytes of all
    inputs: so it is of use for what takes longer than reading them, such as decoding.

    Parameters
    ----------
    function
        Takes batches, or tensors, and returns one of as many samples, each of which follows from
        the samples of the inputs in its place. No random numbers.
    key
        Name of what the function does, to be changed with its code.
    where
        ``"ram"``: memory that all processes of this host share, until the last one that uses it is
        gone; or a directory on a local disk, where samples stay.
    limit_bytes
        Most bytes of samples that are kept; by default a tenth of the memory or disk is left free.

    Examples
    --------
    >>> decode = ndd.CachedFunction(
    ...     lambda jpegs: ndd.resize(ndd.decoders.image(jpegs), resize_shorter=256),
    ...     key="shorter 256",
    ... )
    >>> for jpegs, labels in reader.next_epoch(batch_size=32):
    ...     images = ndd.random_resized_crop(decode(jpegs), size=(224, 224))
    """

    def __init__(
        self,
        function: Callable[..., Any],
        *,
        key: str,
        where: Any = "ram",
        limit_bytes: int | None = None,
    ) -> None:
        if not callable(function):
            raise ArgumentTypeError(
                f"`function` of `ndd.CachedFunction` is {function!r}, and is called."
            )
        if not key or not isinstance(key, str):
            raise ArgumentValueError(
                f"`key` of `ndd.CachedFunction` is {key!r}: give a name of what the function does."
            )
        if limit_bytes is not None and limit_bytes < 0:
            raise ArgumentValueError(f"`limit_bytes` is {limit_bytes}, but must not be negative.")
        if not fspath(where):
            raise ArgumentValueError('`where` is empty; give "ram" or the path of a directory.')
        said = repr(("dynamic", __version__, DECODER.value(), key)).encode()
        digest = hashlib.blake2b(said, digest_size=16).hexdigest()
        self._function = function
        self._store = Store(fspath(where), digest, limit_bytes, user_line())
        self._store.open(0)

    def __call__(self, *inputs: Any) -> Any:
        """Return what the function makes of the samples, on the CPU."""
        if THREAD.capture is not None:
            raise NotYetSupportedError(
                "`ndd.CachedFunction` looks at samples, which a loop with `capture=True` does not "
                "have yet."
            )
        handles = [v if isinstance(v, TensorHandle) else as_tensor(v) for v in inputs]
        sizes = {handle._reference.size for handle in handles}
        if len(sizes) != 1 or any(handle._reference.device != "cpu" for handle in handles):
            raise MisusedArgumentError(
                "`ndd.CachedFunction` takes batches of one size, or tensors, all on the CPU, got "
                f"{', '.join(map(str, handles)) or 'nothing'}."
            )
        (size,) = sizes
        values: list[HostValue] = [handle._reference.get() for handle in handles]
        keys = [_key([value.rows[k] for value in values]) for k in range(len(values[0].rows))]
        spec = self._store.spec()
        found: list[Found | None] = [
            None if place is None or spec is None or place.dtype != spec.dtype else place
            for place in self._store.find(keys, [_STAMP] * len(keys))
        ]
        rows: list[Any] = [None] * len(keys)
        missing = [k for k, place in enumerate(found) if place is None]
        if missing:
            made = self._made([_taken(value, missing, size) for value in values], missing, size)
            spec = made.spec
            for k, row in zip(missing, made.rows, strict=True):
                rows[k] = row
                self._store.put(keys[k], _STAMP, row, spec)
        assert spec is not None
        dtype = storage_dtype(spec.dtype)
        for k, place in enumerate(found):
            if place is not None:
                rows[k] = own_row(self._store.view(*place[:2], place.shape, dtype), dtype)
        return handle_of(ValueReference(spec, size, HostValue(rows, spec, values[0].sources)))

    def _made(self, inputs: list[Any], missing: list[int], size: int | None) -> Any:
        made = self._function(*inputs)
        wanted = None if size is None else len(missing)
        if not isinstance(made, TensorHandle) or made._reference.size != wanted:
            raise ArgumentTypeError(
                f"The function of `ndd.CachedFunction` returned {made!r} for "
                f"{'a tensor' if size is None else f'a batch of {wanted}'}: expected one of as "
                "many samples."
            )
        if made._reference.device != "cpu":
            made = made.cpu()  # type: ignore[attr-defined]
        return made._reference.get()


def _key(rows: list[np.ndarray]) -> bytes:
    digest = hashlib.blake2b(digest_size=16)
    for row in rows:
        digest.update(repr((row.shape, row.dtype.str)).encode())
        digest.update(np.ascontiguousarray(row).data)
    return digest.digest()


def _taken(value: HostValue, places: list[int], size: int | None) -> Any:
    """Some of the samples."""
    rows = [value.rows[k] for k in places]
    sources = None if value.sources is None else [value.sources[k] for k in places]
    part = HostValue(rows, value.spec, sources, external=value.external)
    return handle_of(ValueReference(value.spec, None if size is None else len(places), part))
