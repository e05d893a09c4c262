"""Shared code of image decoders."""
