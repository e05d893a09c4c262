"""Videos: what FFmpeg decodes, frame by frame, and its colours."""
