"""What operators on videos have in common."""
