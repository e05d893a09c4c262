"""A classifier of clips: what moves which way."""
