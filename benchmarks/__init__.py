"""Measurements, one file for each question."""
