"""What operators on audio share."""
