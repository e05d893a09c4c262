"""Video by the decoders of an NVIDIA GPU, which PyNvVideoCodec drives."""
