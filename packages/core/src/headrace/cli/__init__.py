"""The command line: ``headrace``. It needs typer and rich: ``pip install 'headrace[cli]'``."""
