"""What a source that is made for external sources says about itself."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class SourceTraits(NamedTuple):
    """How a source wants to be used, as its attribute `external_source_traits`."""

    num_outputs: int | None = None
    """How many outputs it has; `None` for one that is no list."""
    batch_info: bool = False
    """Whether it wants a `BatchInfo`, which tells the epoch as well, to find its place."""
    gives_away: bool = False
    """Whether nobody writes to its arrays any more, so that they need not be copied."""


class SourceWithTraits(Protocol):
    """A source that says how it wants to be used."""

    @property
    def external_source_traits(self) -> SourceTraits:
        """How."""


def completed(arguments: dict[str, Any]) -> dict[str, Any]:
    """`arguments` of an external source, with what its source wants where nothing was given."""
    traits = getattr(arguments.get("source"), "external_source_traits", None)
    if not isinstance(traits, SourceTraits):
        return arguments
    wanted: dict[str, Any] = {}
    if traits.num_outputs is not None:
        wanted["num_outputs"] = traits.num_outputs
    if traits.batch_info:
        wanted["batch_info"] = True
    # What goes on to a GPU is copied to page-locked memory anyway.
    if traits.gives_away and arguments.get("device") in (None, "cpu"):
        wanted["no_copy"] = True
    return {**arguments, **{k: v for k, v in wanted.items() if arguments.get(k) is None}}
