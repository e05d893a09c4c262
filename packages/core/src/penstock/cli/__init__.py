"""The command line: ``penstock``. It needs typer and rich: ``pip install 'penstock[cli]'``."""
