"""Parts of the executor that record their work; used in place of the plain ones in a profiled
pipeline.
"""
