"""Samples and batches that come from the user's own Python code."""
