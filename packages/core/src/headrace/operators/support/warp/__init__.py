"""Shared code of affine-warp operators."""
