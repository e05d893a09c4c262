"""What decoders of images share."""
