"""Floor 4: what the user's definition says, before anything runs."""
