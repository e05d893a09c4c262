"""What operators share that draw random tensors."""
