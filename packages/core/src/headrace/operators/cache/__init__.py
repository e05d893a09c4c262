"""Samples that are kept between epochs and runs: `fn.cache`."""
