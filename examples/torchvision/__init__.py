"""A training with torchvision's transforms, before and after."""
