"""Worker processes that carry samples through the stages on the CPU, on memory they share."""
