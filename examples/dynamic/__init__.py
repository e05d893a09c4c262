"""Examples of dynamic mode: operators called on data, in plain Python."""
