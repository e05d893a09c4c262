"""Floor 4: what the user's definition says, before anything runs."""

from __future__ import annotations

import penstock.graph.expressions  # gives `DataNode` its arithmetic
