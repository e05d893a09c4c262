"""Floor 4: the graph of the user's definition, before anything runs."""

from __future__ import annotations

from headrace.graph import expressions as expressions  # gives `DataNode` its arithmetic
