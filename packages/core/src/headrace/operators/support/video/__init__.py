"""Shared code of operators on videos."""
