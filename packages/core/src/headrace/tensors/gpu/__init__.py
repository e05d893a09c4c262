"""Device memory, streams and batches on the GPU. Imports no GPU library until one is asked for."""
