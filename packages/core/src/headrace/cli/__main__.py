"""``python -m headrace.cli``, and what the script `headrace` calls."""

from __future__ import annotations

import sys

_NEEDED = ("typer", "rich")


def main() -> None:
    """Run the command line; if its libraries are missing, say in a line what to install."""
    try:
        from headrace.cli.app import app
    except ModuleNotFoundError as error:
        top = (error.name or "").partition(".")[0]
        if top not in _NEEDED:
            raise
        sys.stderr.write(
            f"The command line of Headrace needs the library `{top}`, which is not installed. "
            "Run `pip install 'headrace[cli]'`.\n"
        )
        raise SystemExit(1) from None
    app()


if __name__ == "__main__":
    main()
