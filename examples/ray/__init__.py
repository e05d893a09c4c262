"""Training that other machines' processors feed."""
