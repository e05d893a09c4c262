"""Penstock feeding TensorFlow and Keras."""
