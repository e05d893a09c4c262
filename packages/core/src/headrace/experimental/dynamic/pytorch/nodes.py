"""Readers and functions as nodes of torchdata, and the way from there to PyTorch.

This module needs torchdata: ``pip install torchdata``. A chain of nodes::

    from torchdata.nodes import Loader

    node = Reader(ndd.readers.File, batch_size=8, file_root="images")
    node = DictMapper(node, ndd.decoders.image)
    loader = Loader(ToTorch(node))
"""

from __future__ import annotations

import contextlib
from collections.abc import Callable, Iterable
from typing import TYPE_CHECKING, Any

from headrace._optional import import_optional
from headrace.errors import ArgumentTypeError, ArgumentValueError, UsageError
from headrace.experimental.dynamic.reader import Epoch
from headrace.experimental.dynamic.reader import Reader as DynamicReader
from headrace.experimental.dynamic.tensors import torch_module

if TYPE_CHECKING:

    class BaseNode:
        """Declaration of torchdata's class for type checkers, as it may not be installed."""

        def __init__(self) -> None: ...
        def reset(self, initial_state: dict[str, Any] | None = None) -> None: ...
        def __next__(self) -> Any: ...
        def state_dict(self) -> dict[str, Any]: ...

else:
    BaseNode = import_optional(
        "torchdata.nodes", purpose="Nodes for PyTorch", install="torchdata"
    ).BaseNode

__all__ = ["DictMapper", "Reader", "ToTorch"]

_TWO_NAMES = ("data", "label")


class Reader(BaseNode):
    """The epochs of a reader, as dictionaries of its outputs."""

    def __init__(
        self,
        reader_type: type[DynamicReader],
        *,
        batch_size: int | None,
        output_names: Iterable[str] | None = None,
        **kwargs: Any,
    ) -> None:
        super().__init__()
        if not (isinstance(reader_type, type) and issubclass(reader_type, DynamicReader)):
            raise ArgumentTypeError(
                f"`reader_type` is a class such as `ndd.readers.File`, got {reader_type!r}."
            )
        self._type = reader_type
        # States cost nothing, but change the order of `shuffle_after_epoch`: see the readers.
        keep = not kwargs.get("shuffle_after_epoch")
        self._arguments = {"enable_checkpointing": keep, **kwargs}
        self._batch_size = batch_size
        self._reader = reader_type(**self._arguments)
        count = self._reader._num_outputs
        if output_names is None:
            if count != len(_TWO_NAMES):
                raise ArgumentValueError(
                    f"`{reader_type.__name__}` has {count} outputs: `output_names` must name them."
                )
            self._names: tuple[str, ...] = _TWO_NAMES
        else:
            self._names = tuple(output_names)
        if len(self._names) != count:
            raise ArgumentValueError(
                f"`output_names` has {len(self._names)} names, but `{reader_type.__name__}` has "
                f"{count} outputs."
            )
        self._epoch: Epoch | None = None

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Begin an epoch."""
        super().reset(initial_state)
        if initial_state:
            if not {"reader", "left"} <= initial_state.keys():
                raise ArgumentValueError(f"{initial_state!r} is no state of this node.")
            reader = self._type(**self._arguments)
            reader.set_state(initial_state["reader"])
            self._reader = reader
            self._epoch = Epoch(reader, self._batch_size, None)
            self._epoch.shorten(initial_state["left"])
        else:
            self._epoch = Epoch(self._reader, self._batch_size, None)

    def next(self) -> dict[str, Any]:
        """The outputs of the next step, by name."""
        if self._epoch is None:
            raise UsageError("The node has not begun an epoch: call `reset` first.")
        return dict(zip(self._names, next(self._epoch), strict=True))

    def get_state(self) -> dict[str, Any]:
        """Get the node's position, for `reset`; empty before the first step."""
        if self._epoch is None or not self._epoch.has_begun:
            return {}
        return {"reader": str(self._reader.get_state()), "left": self._epoch.left}

    def get_metadata(self) -> dict[str, int]:
        """Sizes and shards of the reader."""
        return self._reader.get_metadata()


class _FollowingNode(BaseNode):
    """A node that changes what another one gives."""

    def __init__(self, source: Any) -> None:
        super().__init__()
        if not isinstance(source, BaseNode):
            raise ArgumentTypeError(f"`source` is a node of torchdata, got {source!r}.")
        self._source = source

    def reset(self, initial_state: dict[str, Any] | None = None) -> None:
        """Begin an epoch, or go on from a state."""
        super().reset(initial_state)
        self._source.reset((initial_state or {}).get("source"))

    def get_state(self) -> dict[str, Any]:
        """Get the node's position."""
        return {"source": self._source.state_dict()}


class DictMapper(_FollowingNode):
    """Applies a function to one of the outputs of a node."""

    def __init__(self, source: Any, map_fn: Callable[[Any], Any], key: str = "data") -> None:
        super().__init__(source)
        if not callable(map_fn):
            raise ArgumentTypeError(f"`map_fn` is a function, got {map_fn!r}.")
        self._function = map_fn
        self._key = key

    def next(self) -> dict[str, Any]:
        """The next outputs, one of them changed."""
        found = dict(next(self._source))
        found[self._key] = self._function(found[self._key])
        return found


class ToTorch(_FollowingNode):
    """Makes tuples of PyTorch's tensors of the outputs of a node."""

    def __init__(self, source: Any, output_stream: Any = None) -> None:
        super().__init__(source)
        self._torch = torch_module()
        self._stream = output_stream

    def next(self) -> tuple[Any, ...]:
        """The next outputs, in order."""
        found = next(self._source)
        with self._on_stream(found.values()):
            return tuple([value.torch(copy=None) for value in found.values()])

    def _on_stream(self, values: Iterable[Any]) -> Any:
        if self._stream is None or all(v.device.device_type == "cpu" for v in values):
            return contextlib.nullcontext()
        from headrace.types import raw_cuda_stream

        cuda = self._torch.cuda
        return cuda.stream(cuda.ExternalStream(raw_cuda_stream(self._stream)))
