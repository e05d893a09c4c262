"""Parts of the interface that DALI calls experimental."""
