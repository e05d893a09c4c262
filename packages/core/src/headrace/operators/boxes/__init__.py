"""Boxes around objects in images."""
