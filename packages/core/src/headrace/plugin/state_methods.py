"""Methods of iterators whose pipelines make checkpoints.

Trainers look for them by name, or by a ``Protocol``, and call at the end of each epoch what they
find: an iterator that cannot do it must not have them, nor may its class.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.plugin.iterator_state import as_state_dict
from headrace.tracebacks import public_methods

if TYPE_CHECKING:
    from collections.abc import Mapping


@public_methods
class StateMethods:
    """Save and load where an iterator stands."""

    __slots__ = ()

    if TYPE_CHECKING:

        def checkpoints(self) -> list[bytes]: ...  # noqa: D102
        def _load(self, state: Mapping[str, Any]) -> None: ...

    def state_dict(self) -> dict[str, Any]:
        """Return the iterator's position, for `load_state_dict` of this one or of one like it.

        It continues after the batches that were handed out, in the middle of an epoch as well.
        Programs that save stateful loaders, as PyTorch's ``StatefulDataLoader`` is one, find it by
        its name. Only iterators have it whose pipelines were made with
        ``enable_checkpointing=True``.

        Returns
        -------
        `checkpoints` as text, in a dictionary that JSON, pickle and ``torch.save`` keep.

        Raises
        ------
        UsageError
            If a step was interrupted, as by Ctrl-C.
        """
        return as_state_dict(self.checkpoints())

    def load_state_dict(self, state: Mapping[str, Any]) -> None:
        """Go on where `state_dict` was called; the next loop goes through the rest of that epoch.

        The pipelines are those that the iterator has: what they are working on is thrown away, and
        their readers and sources go to where they were. Where an epoch was at its end, though not
        reset, the next loop is as `checkpoints` says. If an error says that `state` does not fit,
        the iterator is as before. Only iterators have it whose pipelines were made with
        ``enable_checkpointing=True``.

        Parameters
        ----------
        state
            Result of `state_dict` of an iterator over pipelines with the same readers,
            sources and random operators, as many, and in the same order; or, with `reader_name`,
            over another number of shards, each a pipeline's.

        Raises
        ------
        ArgumentTypeError, CheckpointError
            If `state` is no such state, or comes from an iterator over other pipelines.
        """
        self._load(state)


def with_methods(cls: Any, methods: type) -> Any:
    """The class `cls` with `methods` after its own; the same each time."""
    if issubclass(cls, methods):
        return cls
    made = cls.__dict__.get("_with_methods")
    if made is None:
        names = ("__module__", "__qualname__", "__doc__")
        made = type(cls)(cls.__name__, (cls, methods), {n: getattr(cls, n) for n in names})
        cls._with_methods = made
    return made
