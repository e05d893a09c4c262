"""Sources that run beside the pipeline, in processes or threads of their own."""
