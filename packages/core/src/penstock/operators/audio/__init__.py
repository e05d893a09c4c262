"""Operators of the audio family."""
