"""Where batches come from: files that are read whole batches at a time, and workers of sources."""
