"""Contact sheets: the samples of a batch side by side, each with its number and labels."""

from __future__ import annotations

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.display.outputs import DisplayOutput, outputs_of
from headrace.display.pictures import (
    Kind,
    ValueRange,
    fitted,
    frames,
    kind_and_layout,
    signal,
    spectrogram,
)
from headrace.errors import ArgumentTypeError, ArgumentValueError, UsageError
from headrace.kernels.cpu.opencv import cv2
from headrace.tensors._repr import shape_range

if TYPE_CHECKING:
    from os import PathLike

_GAP = 6
_LINE = 16
"""Height of a line of text, in pixels."""
_LETTER = 7
"""Width of a letter, about."""
_PAPER = 255
_TEXT = (50, 50, 50)
_MOST_FRAMES = 16
_COLUMNS = 8


def show(
    data: Any,
    filename: str | PathLike[str] | None = None,
    *,
    layout: str | None = None,
    labels: Sequence[Any] | None = None,
    max_samples: int = 32,
    columns: int | None = None,
    size: int = 160,
) -> None:
    """Show samples side by side: in a notebook, or in a PNG file.

    Images stand in rows; sequences and volumes have a row each, of frames or slices. Of signals,
    the envelope is drawn, and spectrograms in colours, low frequencies at the bottom. Outputs with
    one number or a few for each sample, such as labels, are written below the pictures of the
    others.

    Values between 0 and 1 (floats) or 0 and 255 are shown as they are. Others, as of normalised
    images, are stretched from the smallest to the largest of the output; its title says these.

    Parameters
    ----------
    data
        A batch or a tensor, of a pipeline or of dynamic mode; an array of NumPy, PyTorch, JAX or
        CuPy, of one sample or a batch; a list of samples; or several outputs: what `Pipeline.run`
        or a step of an iterator gave, or a dictionary. What is on a GPU is copied.
    filename
        A file to write, ``*.png``. It may be left out in a notebook.
    layout
        Layout of a sample, such as ``"CHW"``, for data that has none. Without it, it is guessed
        from the shape.
    labels
        Caption of each sample, in place of its number and the numbers in other outputs.
    max_samples
        Number of samples of each output to show: the first ones.
    columns
        Number of samples in a row; 8 by default, 1 for sequences.
    size
        Longer side of each picture in pixels. Smaller ones are enlarged by whole factors.

    Raises
    ------
    UsageError
        If there is neither a notebook nor a `filename`.
    ArgumentTypeError, ArgumentValueError, LayoutError, ShapeError
        If there is nothing to see in `data`, or other arguments make no sense.

    Examples
    --------
    >>> headrace.show(pipe.run(), "batch.png")
    >>> headrace.show(spectrograms, layout="ft")
    """
    path = None if filename is None else Path(filename)
    if path is not None and path.suffix.lower() != ".png":
        raise ArgumentValueError(f"`filename` is {str(path)!r}; it has to end in .png.")
    kernel = _notebook()
    if path is None and kernel is None:
        raise UsageError(
            "There is no notebook to show a picture in: give `filename`, such as "
            'show(batch, "batch.png").'
        )
    pixels = contact_sheet(
        data, layout=layout, labels=labels, max_samples=max_samples, columns=columns, size=size
    )
    png = cv2().imencode(".png", np.ascontiguousarray(pixels[..., ::-1]))[1].tobytes()
    if path is not None:
        path.write_bytes(png)
    else:
        assert kernel is not None
        kernel.display.display(kernel.display.Image(png))


def contact_sheet(
    data: Any,
    *,
    layout: str | None = None,
    labels: Sequence[Any] | None = None,
    max_samples: int = 32,
    columns: int | None = None,
    size: int = 160,
) -> np.ndarray:
    """The picture that `show` shows, for loggers and tests.

    Parameters
    ----------
    data, layout, labels, max_samples, columns, size
        As of `show`.

    Returns
    -------
    RGB, uint8 ``(height, width, 3)``.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError, LayoutError, ShapeError
        If there is nothing to see in `data`, or other arguments make no sense.
    """
    for name, value in (("max_samples", max_samples), ("columns", columns), ("size", size)):
        if value is not None and value < 1:
            raise ArgumentValueError(f"`{name}` is {value}; it has to be at least 1.")
    outputs = [output for output in outputs_of(data, layout, max_samples) if output.samples]
    largest = [max(output.samples, key=np.size) for output in outputs]
    kinds = [kind_and_layout(s, o.layout) for s, o in zip(largest, outputs, strict=True)]
    captions = _captions(outputs, kinds, labels)
    blocks = []
    for output, (kind, found) in zip(outputs, kinds, strict=True):
        if kind in (Kind.NUMBERS, Kind.NOTHING):
            continue
        scale = ValueRange.of(output.samples, kind)
        longest = max(max(sample.shape, default=0) for sample in output.samples)
        rows = [_tiles(sample, kind, found, scale, size, longest) for sample in output.samples]
        blocks += [_title(output, found, scale), _grid(rows, captions, columns)]
    if not blocks:
        raise ArgumentTypeError(
            f"There is nothing to see in {_described(outputs)}. Encoded files have to be decoded "
            "first; the axes of other data are named by `layout`."
        )
    width = max(block.shape[1] for block in blocks)
    return np.concatenate([_padded(block, block.shape[0], width) for block in blocks])


def _notebook() -> Any:
    """The module IPython, if this program runs in a kernel of it that shows pictures."""
    module = sys.modules.get("IPython")
    shell = None if module is None else module.get_ipython()
    return module if shell is not None and hasattr(shell, "kernel") else None


def _described(outputs: Sequence[DisplayOutput]) -> str:
    if not outputs:
        return "an empty batch"
    return "; ".join(
        f"{output.name or 'the data'} ({len(output.samples)} samples of {output.samples[0].dtype}, "
        f"shape {shape_range([s.shape for s in output.samples])})"
        for output in outputs
    )


def _captions(
    outputs: Sequence[DisplayOutput],
    kinds: Sequence[tuple[Kind, str]],
    labels: Sequence[Any] | None,
) -> list[str]:
    """Return the caption below each sample."""
    if labels is not None:
        return [str(label) for label in labels]
    count = max((len(output.samples) for output in outputs), default=0)
    texts = [[str(k)] for k in range(count)]
    for output, (kind, _) in zip(outputs, kinds, strict=True):
        if kind is Kind.NUMBERS:
            for text, sample in zip(texts, output.samples, strict=False):
                text.append(" ".join(f"{value:.4g}" for value in sample.ravel().tolist()))
    return [": ".join([text[0], ", ".join(text[1:])]) if text[1:] else text[0] for text in texts]


def _tiles(
    sample: np.ndarray, kind: Kind, layout: str, scale: ValueRange, size: int, longest: int
) -> list[np.ndarray]:
    if kind is Kind.SIGNAL:
        return [signal(sample, scale, 2 * size, max(size // 2, 8))]
    if kind is Kind.SPECTROGRAM:
        # Of one scale: seconds and bands of all have the same extents.
        return [fitted(spectrogram(sample, layout, scale), 2 * size, longest)]
    return [fitted(each, size) for each in frames(sample, layout, scale, _MOST_FRAMES)]


def _title(output: DisplayOutput, layout: str, scale: ValueRange) -> np.ndarray:
    shown = len(output.samples)
    parts = [
        f"{output.name}:" if output.name else "",
        f"{shown} of {output.size}" if shown < output.size else f"{shown}",
        f'x {output.samples[0].dtype} "{layout}" {shape_range([s.shape for s in output.samples])},',
        f"{scale.low:.4g} .. {scale.high:.4g}",
    ]
    text = " ".join(part for part in parts if part)
    block = np.full((_LINE + 2 * _GAP, len(text) * _LETTER + 2 * _GAP, 3), _PAPER, np.uint8)
    return _written(block, text, _GAP, block.shape[0] - _GAP - 4)


def _grid(
    rows: Sequence[Sequence[np.ndarray]], captions: Sequence[str], columns: int | None
) -> np.ndarray:
    """All samples, each with its tiles side by side and its caption below."""
    several = any(len(tiles) > 1 for tiles in rows)
    wanted = columns or (1 if several else _COLUMNS if rows[0][0].shape[1] <= 400 else 4)
    in_a_row = min(wanted, len(rows))
    height = max(tile.shape[0] for tiles in rows for tile in tiles)
    width = max(sum(t.shape[1] for t in tiles) + _GAP * (len(tiles) - 1) for tiles in rows)
    cell_height, cell_width = height + _LINE + _GAP, width + _GAP
    lines = -(-len(rows) // in_a_row)
    sheet = np.full((lines * cell_height + _GAP, in_a_row * cell_width + _GAP, 3), 255, np.uint8)
    for number, tiles in enumerate(rows):
        y = _GAP + number // in_a_row * cell_height
        x = left = _GAP + number % in_a_row * cell_width
        for tile in tiles:
            sheet[y : y + tile.shape[0], x : x + tile.shape[1]] = tile
            x += tile.shape[1] + _GAP
        if number < len(captions):
            text = captions[number][: max(1, width // _LETTER)]
            _written(sheet, text, left, y + max(t.shape[0] for t in tiles) + _LINE - 4)
    return sheet


def _written(picture: np.ndarray, text: str, x: int, y: int) -> np.ndarray:
    """`picture`, with a line of text that begins at the pixel (x, y), its lower left corner."""
    font = cv2().FONT_HERSHEY_SIMPLEX
    written = text.encode("ascii", "replace").decode()
    cv2().putText(picture, written, (x, y), font, 0.38, _TEXT, 1, cv2().LINE_AA)
    return picture


def _padded(block: np.ndarray, height: int, width: int) -> np.ndarray:
    padded = np.full((height, width, 3), _PAPER, np.uint8)
    padded[: block.shape[0], : block.shape[1]] = block
    return padded
