"""Penstock feeding JAX and Flax."""
