"""Floor 4: what the user's definition says, before anything runs."""

from __future__ import annotations

from headrace.graph import expressions as expressions  # gives `DataNode` its arithmetic
