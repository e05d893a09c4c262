"""Floor 5: runs a graph."""
