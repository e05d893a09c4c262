"""Noise that is added to images and other data."""
