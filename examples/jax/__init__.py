"""Headrace feeding JAX and Flax."""
