"""Properties that a source made for external sources declares about itself."""

from __future__ import annotations

from typing import Any, NamedTuple, Protocol


class SourceTraits(NamedTuple):
    """Properties of a source, as its attribute `external_source_traits`."""

    num_outputs: int | None = None
    """Number of outputs; `None` for a source that does not return a list."""
    batch_info: bool = False
    """True if it wants a `BatchInfo`, which includes the epoch, to find its position."""
    gives_away: bool = False
    """True if its arrays are never written to again, so that they need not be copied."""


class SourceWithTraits(Protocol):
    """A source that says how it wants to be used."""

    @property
    def external_source_traits(self) -> SourceTraits:
        """Properties of the source."""


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
