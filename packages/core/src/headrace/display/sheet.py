"""Contact sheets: the samples of a batch side by side, each with its number and labels."""

from __future__ import annotations

import contextlib
import itertools
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.display.files import checked_path, encoded
from headrace.display.marks import Classes, Names, SampleMarks, labels_of, marks_of
from headrace.display.outputs import DisplayOutput, outputs_of, taken
from headrace.display.pictures import (
    Kind,
    ValueRange,
    fitted,
    frames,
    kind_and_layout,
    signal,
    spectrogram,
)
from headrace.errors import ArgumentTypeError, ArgumentValueError
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
    boxes: Any = None,
    labels: Any = None,
    masks: Any = None,
    keypoints: Any = None,
    classes: Classes | None = None,
    box_layout: str = "xyXY",
    max_samples: int = 32,
    columns: int | None = None,
    size: int = 160,
) -> None:
    """Show samples side by side: in a notebook, or in a file.

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
        or a step of an iterator gave, or a dictionary. What is on a GPU is copied. Of a pipeline,
        an iterator or a generator, the next batch is taken.
    filename
        A file to write: ``*.png``, ``*.jpg`` or ``*.svg``. In a notebook, it is shown where this is
        left out; elsewhere it is written then to the first of ``batch-1.png``, ``batch-2.png``, ...
        that is free, and its name is printed.
    layout
        Layout of a sample, such as ``"CHW"``, for data that has none. Without it, it is guessed
        from the shape.
    boxes
        Boxes to draw over images and frames, ``(boxes, 4)`` for each sample, or
        ``(frames, boxes, 4)``: a batch, an array or a list; or the number or name of the output of
        `data` that has them. Positions are pixels; or, if none of a sample's is beyond 1 and they
        are floats, fractions of the image.
    labels
        Caption of each sample, in place of its number and the numbers in other outputs; with
        `boxes`, or masks of objects, a list for each sample with the class of each box, a number or
        a text. It may be the number or name of an output, too.
    masks
        Masks to lay over images: numbers of classes ``(height, width)``, of which 0 is left as it
        is, or bool ``(objects, height, width)``. As `boxes`, it may name an output.
    keypoints
        Points to draw, ``(points, 2)``, x and y, or ``(objects, points, 2)``; a third number that
        is 0 hides a point. Units as of `boxes`. It may name an output.
    classes
        Names of classes by number: a list or a dictionary. They are written in place of numbers,
        and a legend has those that were drawn.
    box_layout
        ``"xyXY"``: left, top, right, bottom; ``"xyWH"``: left, top, width, height.
    max_samples
        Number of samples of each output to show: the first ones.
    columns
        Number of samples in a row; 8 by default, 1 for sequences.
    size
        Longer side of each picture in pixels. Smaller ones are enlarged by whole factors.

    Raises
    ------
    ArgumentTypeError, ArgumentValueError, LayoutError, ShapeError
        If there is nothing to see in `data`, or other arguments make no sense.

    Examples
    --------
    >>> headrace.show(pipe.run(), "batch.png")
    >>> headrace.show(pipe, "boxes.png", boxes=1, labels=2, classes=["person", "bicycle"])
    >>> headrace.show(spectrograms, layout="ft")
    """
    path = None if filename is None else checked_path(filename)
    kernel = _notebook()
    pixels = contact_sheet(
        data,
        layout=layout,
        boxes=boxes,
        labels=labels,
        masks=masks,
        keypoints=keypoints,
        classes=classes,
        box_layout=box_layout,
        max_samples=max_samples,
        columns=columns,
        size=size,
    )
    if path is not None:
        path.write_bytes(encoded(pixels, path.suffix))
    elif kernel is not None:
        kernel.display.display(kernel.display.Image(encoded(pixels, ".png")))
    else:
        _write_free(encoded(pixels, ".png"))


def _write_free(png: bytes) -> None:
    """Write a picture that no notebook shows, so that cells of one run as a program, too."""
    for number in itertools.count(1):
        path = Path(f"batch-{number}.png")
        with contextlib.suppress(FileExistsError), path.open("xb") as file:
            file.write(png)
            sys.stdout.write(f"headrace.show: no notebook to show it in; wrote {path}.\n")
            return


def contact_sheet(
    data: Any,
    *,
    layout: str | None = None,
    boxes: Any = None,
    labels: Any = None,
    masks: Any = None,
    keypoints: Any = None,
    classes: Classes | None = None,
    box_layout: str = "xyXY",
    max_samples: int = 32,
    columns: int | None = None,
    size: int = 160,
) -> np.ndarray:
    """The picture that `show` shows, for loggers and tests.

    Parameters
    ----------
    data, layout, boxes, labels, masks, keypoints, classes, box_layout, max_samples, columns, size
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
    outputs = [output for output in outputs_of(taken(data), layout, max_samples) if output.samples]
    over = {"boxes": boxes, "labels": labels, "masks": masks, "keypoints": keypoints}
    outputs, over = _without_named(outputs, over)
    names = Names(classes)
    count = max((len(output.samples) for output in outputs), default=0)
    marks = marks_of(count, box_layout=box_layout, **over)
    largest = [max(output.samples, key=np.size) for output in outputs]
    kinds = [kind_and_layout(s, o.layout) for s, o in zip(largest, outputs, strict=True)]
    captions = _captions(outputs, kinds, over["labels"], marks, names)
    blocks = []
    for output, (kind, found) in zip(outputs, kinds, strict=True):
        if kind in (Kind.NUMBERS, Kind.NOTHING):
            continue
        scale = ValueRange.of(output.samples, kind)
        longest = max(max(sample.shape, default=0) for sample in output.samples)
        rows = [
            _tiles(sample, kind, found, scale, size, longest, mark, names)
            for sample, mark in zip(output.samples, marks, strict=False)
        ]
        blocks += [_title(output, found, scale), _grid(rows, captions, columns)]
    if not blocks:
        raise ArgumentTypeError(
            f"There is nothing to see in {_described(outputs)}. Encoded files have to be decoded "
            "first; the axes of other data are named by `layout`."
        )
    width = max(block.shape[1] for block in blocks)
    if names.legend:
        blocks.append(_legend(names, width))
        width = max(width, blocks[-1].shape[1])
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
    labels: Any,
    marks: Sequence[SampleMarks],
    names: Names,
) -> list[str]:
    """Return the caption below each sample."""
    found = labels_of(labels, len(marks))
    if labels is not None and all(mark.labels is None for mark in marks):
        return [_caption(label, names) for label in found if label is not None]
    count = max((len(output.samples) for output in outputs), default=0)
    texts = [[str(k)] for k in range(count)]
    for output, (kind, _) in zip(outputs, kinds, strict=True):
        if kind is Kind.NUMBERS:
            for text, sample in zip(texts, output.samples, strict=False):
                text.append(" ".join(f"{value:.4g}" for value in sample.ravel().tolist()))
    return [": ".join([text[0], ", ".join(text[1:])]) if text[1:] else text[0] for text in texts]


def _caption(label: Any, names: Names) -> str:
    if isinstance(label, list) and len(label) == 1:
        (label,) = label
    known = isinstance(label, int) and not isinstance(label, bool)
    return names.text(label) if known else str(label)


def _without_named(
    outputs: list[DisplayOutput], over: dict[str, Any]
) -> tuple[list[DisplayOutput], dict[str, Any]]:
    """Outputs to see, and arrays to draw over them in place of the outputs named for that."""
    found, used = {}, set()
    for name, value in over.items():
        found[name] = value
        if not isinstance(value, (int, str)):
            continue
        number = value
        if isinstance(value, str):
            known = [output.name for output in outputs]
            if value not in known:
                raise ArgumentValueError(
                    f"`{name}` is {value!r}; the outputs are {', '.join(map(repr, known))}."
                )
            number = known.index(value)
        if not 0 <= int(number) < len(outputs):
            raise ArgumentValueError(
                f"`{name}` is output {value}; there are {len(outputs)} outputs, from 0 on."
            )
        found[name] = outputs[int(number)].samples
        used.add(int(number))
    return [output for k, output in enumerate(outputs) if k not in used], found


def _legend(names: Names, width: int) -> np.ndarray:
    """A swatch and a name for each class that was drawn, in as many lines as that takes."""
    entries = [
        (color, text, _LINE + _LETTER * len(text) + 3 * _GAP) for color, text in names.legend
    ]
    places, x, line = [], _GAP, 0
    for _, _, extent in entries:
        if x > _GAP and x + extent > width:
            x, line = _GAP, line + 1
        places.append((x, _GAP + line * (_LINE + _GAP)))
        x += extent
    most = max(x + entry[2] for (x, _), entry in zip(places, entries, strict=True))
    height = (line + 1) * (_LINE + _GAP) + _GAP
    block = np.full((height, max(width, most), 3), _PAPER, np.uint8)
    for (left, top), (color, text, _) in zip(places, entries, strict=True):
        block[top + 2 : top + 14, left : left + 12] = color
        _written(block, text, left + _LINE, top + 12)
    return block


def _tiles(
    sample: np.ndarray,
    kind: Kind,
    layout: str,
    scale: ValueRange,
    size: int,
    longest: int,
    marks: SampleMarks,
    names: Names,
) -> list[np.ndarray]:
    if kind is Kind.SIGNAL:
        return [signal(sample, scale, 2 * size, max(size // 2, 8))]
    if kind is Kind.SPECTROGRAM:
        # Of one scale: seconds and bands of all have the same extents.
        return [fitted(spectrogram(sample, layout, scale), 2 * size, longest)]
    return [
        marks.drawn_on(fitted(picture, size), picture.shape[:2], number, names)
        for number, picture in enumerate(frames(sample, layout, scale, _MOST_FRAMES))
    ]


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
