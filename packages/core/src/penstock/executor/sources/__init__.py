"""Processes and threads that run parallel external sources."""
