"""Headrace feeding TensorFlow and Keras."""
