"""Sources of batches: files read whole batches at a time, and workers of external sources."""
