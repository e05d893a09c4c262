"""The same training input twice: with Dataset, DataLoader and transforms, and as a pipeline."""
