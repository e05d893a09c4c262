"""Compiled loops over samples that `plan` uses: geometry of several samples at once."""
