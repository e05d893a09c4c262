"""What operators share that normalize."""
