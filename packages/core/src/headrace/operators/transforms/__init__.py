"""Affine transforms: matrices for `warp_affine` and for points."""
