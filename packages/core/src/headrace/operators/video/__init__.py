"""Operators of the video family."""
