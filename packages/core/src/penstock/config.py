"""Environment switches: what each one means, its default, and the values it takes.

Every switch of the library is declared here and nowhere else. A switch is read when it is first
needed, not at import, so that a program may set it before its first pipeline.
"""

from __future__ import annotations

import os
from dataclasses import dataclass
from pathlib import Path

from penstock.errors import ArgumentValueError


@dataclass(frozen=True, slots=True)
class Switch:
    """One environment variable."""

    name: str
    default: str
    choices: tuple[str, ...]
    """Allowed values, in lower case."""
    meaning: str

    def value(self) -> str:
        """The value in force, one of `choices`.

        Raises
        ------
        ArgumentValueError
            If the environment asks for something else.
        """
        given = os.environ.get(self.name, "").strip().lower() or self.default
        if given not in self.choices:
            allowed = ", ".join(self.choices)
            raise ArgumentValueError(
                f"The environment variable {self.name} is {given!r}; allowed are {allowed}."
            )
        return given


DECODER = Switch(
    "PENSTOCK_DECODER",
    "auto",
    ("auto", "nvimagecodec", "opencv"),
    "Library that decodes images on the CPU. `auto` takes nvImageCodec where it is installed, "
    "which decodes to DALI's own pixels and reads regions without decoding the rest, and "
    "simplejpeg with OpenCV elsewhere.",
)

SWITCHES = (DECODER,)


def kernel_cache_folder() -> Path:
    """Where compiled GPU kernels are kept.

    ``$PENSTOCK_CACHE_DIR/kernels``, by default below ``$XDG_CACHE_HOME/penstock`` or
    ``~/.cache/penstock``. It may be deleted at any time.
    """
    given = os.environ.get("PENSTOCK_CACHE_DIR", "").strip()
    if given:
        return Path(given) / "kernels"
    home = os.environ.get("XDG_CACHE_HOME", "").strip()
    return (Path(home) if home else Path.home() / ".cache") / "penstock" / "kernels"
