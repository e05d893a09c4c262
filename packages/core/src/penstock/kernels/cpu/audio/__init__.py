"""Audio on the CPU: files, sampling rates, filters."""
