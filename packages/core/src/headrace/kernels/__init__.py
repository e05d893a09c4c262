"""Floor 2: pure functions on raw arrays. No schema, no pipeline, no user messages."""
