"""Masks of objects in images."""
