"""Texts and JSON in files."""
