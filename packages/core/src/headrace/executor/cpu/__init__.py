"""Stages on the CPU: samples, in chunks, on worker threads."""
