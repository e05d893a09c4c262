"""Shared code of audio operators."""
