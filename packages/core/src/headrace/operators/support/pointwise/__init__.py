"""Functions of single elements or pixels, chained on the GPU."""
