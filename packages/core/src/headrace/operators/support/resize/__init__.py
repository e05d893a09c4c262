"""What operators share that resample images."""
