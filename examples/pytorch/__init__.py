"""The same training input twice: before (Dataset, DataLoader, transforms) and after (a
pipeline).
"""
