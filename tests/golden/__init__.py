"""Hashes of what every operator makes, in every way to run it: `table.json`."""
