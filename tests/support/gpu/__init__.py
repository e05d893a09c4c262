"""GPU code on machines without a GPU."""
