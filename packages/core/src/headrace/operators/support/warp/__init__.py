"""What operators share that look elements up where an affine map says."""
