"""Squirrel data sets through pipelines, as its tutorial on DALI does it."""
