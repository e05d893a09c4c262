"""Windows of data: arguments that say where they lie, and batches that show a part of others."""
