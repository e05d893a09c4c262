"""Looking at data: batches of images, sequences, signals and spectrograms as one picture."""

from __future__ import annotations

from headrace.display.sheet import contact_sheet, show

__all__ = ["contact_sheet", "show"]


def __dir__() -> list[str]:
    return [*__all__]
