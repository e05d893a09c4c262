"""Floor 3: operators, each declared once; importing this package registers the built-in ones."""
