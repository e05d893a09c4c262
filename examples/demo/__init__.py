"""The main job, from JPEG files to a trained model."""
