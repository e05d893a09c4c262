"""Arrays in files of NumPy."""
