"""Copies between host and device, which the engine puts between operators."""
