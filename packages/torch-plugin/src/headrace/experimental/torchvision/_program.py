"""One image on its way through several transforms: put off, and then done in one pass.

Transforms say in turn what they want (`crop`, `resize`, `flip`, `colour`, `to_tensor`, ...), with
their random values drawn; no pixel is touched before `result`. Then one call of the resampler reads
the window of the source, mirrors, and writes planes: of float32, normalised, unless colours change
in between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

import numpy as np
import PIL.Image
import torch

from headrace.experimental.torchvision._color import pil_contrast, pil_shift
from headrace.experimental.torchvision._conversion import split_pixels
from headrace.experimental.torchvision._encoded import Encoded, encoded
from headrace.experimental.torchvision._inputs import tv_tensors
from headrace.experimental.torchvision._pixels import is_plain, new_pil_image, pil_pixels
from headrace.experimental.torchvision._planes import RGB
from headrace.experimental.torchvision._resize import Window, scratch, taps_for
from headrace.kernels.cpu import photometric
from headrace.kernels.cpu.clipped_taps import ClippedFilter
from headrace.kernels.cpu.resample import resample_image
from headrace.kernels.cpu.resample_taps import Taps

_U8 = np.dtype(np.uint8)
_CHANNELS = (1, RGB)

Spread = Callable[[Callable[[int], None], Sequence[int]], None]
"""Calls a function with all numbers, in one thread or several."""


def one_by_one(work: Callable[[int], None], numbers: Sequence[int]) -> None:
    """Do all in this thread."""
    for k in numbers:
        work(k)


class Filter(NamedTuple):
    """Interpolation of a resize."""

    kind: ClippedFilter
    antialias: bool


class ImageProgram:
    """Wishes about an image, or about all images of a tensor."""

    def __init__(self, image: Any) -> None:
        self._image = image
        """Kept, as its memory is read."""
        self.is_pil = isinstance(image, PIL.Image.Image)
        """True if transforms see a PIL image now."""
        self.is_pure = type(image) is torch.Tensor
        self._lead: tuple[int, ...] = ()
        self._encoded: Encoded | None = None
        self._origin = (0, 0)
        """Row and column of the image with which the source begins."""
        if self.is_pil:
            self._encoded = encoded(image)
            if self._encoded is None:
                self._take_pixels()
            self.channels = 1 if image.mode == "L" else RGB
            height, width = image.height, image.width
        else:
            *lead, self.channels, height, width = image.shape
            self._lead = tuple(lead)
            tensor = image.as_subclass(torch.Tensor).reshape(-1, self.channels, height, width)
            self._source = tensor.numpy().transpose(0, 2, 3, 1)
        self._window = Window(0, 0, height, width)
        self._resized: tuple[int, int] | None = None
        self._filter: Filter | None = None
        self._cut = Window(0, 0, height, width)
        """The window of what was resized, or of the image, that is wanted."""
        self._down = self._across = False
        self._colours: list[tuple[str, Any, bool]] = []
        """Changes of colours: name, number, and whether they are Pillow's."""
        self._scaled = False
        self._normalization: tuple[np.ndarray, np.ndarray] | None = None
        self.touched = False
        self.becomes_tensor = False
        """True if a transform to come makes a tensor of a PIL image."""

    def _take_pixels(self) -> None:
        pixels = pil_pixels(self._image)
        assert pixels is not None
        self._source = pixels[None]

    def _decode(self, taps: tuple[Taps, Taps] | None) -> None:
        """Decode what is needed of an image that is not decoded yet."""
        if self._encoded is None:
            return
        if self.is_pil:  # whose pixels have four bytes
            self._take_pixels()
            return
        window = self._cut
        if taps is not None:
            rows, columns = taps
            extent = rows.high - rows.low, columns.high - columns.low
            window = Window(rows.low, columns.low, *extent)
        pixels = self._encoded.decode(window)
        if pixels is None:
            self._take_pixels()
        else:
            self._source, self._origin = pixels[None], window[:2]

    @property
    def is_resized(self) -> bool:
        """True if another size is wanted."""
        return self._resized is not None

    @property
    def is_scaled(self) -> bool:
        """True if float32 is wanted."""
        return self._scaled

    @property
    def is_image(self) -> bool:
        """False for videos, which torchvision does not make grey."""
        return type(self._image) is not tv_tensors.Video

    @staticmethod
    def takes(image: Any) -> bool:
        """True for the images that programs are made for."""
        if isinstance(image, PIL.Image.Image):
            return image.mode in ("L", "RGB") and min(image.size) > 0
        if type(image) not in (torch.Tensor, tv_tensors.Image, tv_tensors.Video):
            return False
        return is_plain(image, torch.uint8) and image.shape[-3] in _CHANNELS

    @property
    def size(self) -> tuple[int, int]:
        """Height and width now."""
        return self._cut.height, self._cut.width

    @property
    def stand_in(self) -> Any:
        """Something of the image's present type and size, of which random values are drawn."""
        if not self.touched:
            return self._image
        return torch.empty(()).expand(self.channels, *self.size)

    def crop(self, top: int, left: int, height: int, width: int) -> bool:
        """Want a window of what there is; false where it would have to be padded."""
        rows, columns = self.size
        if self._colours or self._scaled or min(height, width) < 1:
            return False
        if top < 0 or left < 0 or top + height > rows or left + width > columns:
            return False
        if self._down:
            top = rows - top - height
        if self._across:
            left = columns - left - width
        self._cut = Window(self._cut.top + top, self._cut.left + left, height, width)
        self.touched = True
        return True

    def resize(self, size: tuple[int, int], filter: Filter | None) -> bool:
        """Want another size."""
        if size == self.size:
            return True
        ready = filter is None or self._resized is not None or self._colours or self._scaled
        if ready or min(*size, *self.size) < 1:
            return False
        self._window, self._cut = self._cut, Window(0, 0, *size)
        self._resized, self._filter = size, filter
        self.touched = True
        return True

    def flip(self, *, down: bool = False, across: bool = False) -> bool:
        """Want rows or columns in the opposite order."""
        if self._scaled:
            return False
        self._down ^= down
        self._across ^= across
        self.touched = True
        return True

    def colour(self, name: str, number: Any) -> bool:
        """Want other colours."""
        if self._scaled:
            return False
        if self.channels == RGB or name in ("brightness", "contrast"):
            self._colours.append((name, number, self.is_pil))
            self.touched = True
        return True

    def to_tensor(self, *, pure: bool) -> bool:
        """Be a tensor from here on."""
        self.is_pil, self.is_pure, self.touched = False, pure, True
        return True

    def scale(self) -> bool:
        """Want float32 from 0 to 1."""
        if self.is_pil or self._scaled:
            return False
        self._scaled = self.touched = True
        return True

    def normalize(self, mean: Any, std: Any) -> bool:
        """Want ``(value - mean) / std`` of each channel."""
        if not self._scaled or self._normalization is not None:
            return False
        self._normalization = _of_levels(tuple(mean), tuple(std), self.channels)
        return self._normalization is not None

    @property
    def shape(self) -> tuple[int, ...] | None:
        """Shape of a tensor of floats or bytes that is wanted; None if it is none."""
        if self.is_pil or not self.touched:
            return None
        return *self._lead, self.channels, *self.size

    @property
    def dtype(self) -> torch.dtype:
        """Its elements."""
        return torch.float32 if self._scaled else torch.uint8

    def result(self, spread: Spread = one_by_one, into: torch.Tensor | None = None) -> Any:
        """The image that was wanted, `into` a contiguous tensor of its shape and type if given."""
        if not self.touched:
            return self._image
        height, width = self.size
        taps = self._taps()
        self._decode(taps)
        if self.is_pil:
            return self._pil(height, width, taps)
        count = len(self._source)
        shape = count, self.channels, height, width
        made = torch.empty(shape, dtype=self.dtype) if into is None else into.view(shape)
        out = made.numpy()
        finish = self._finish()

        def work(k: int) -> None:
            self._fill(self._source[k], out[k], taps, finish)

        spread(work, range(count))
        made = made.reshape(*self._lead, self.channels, height, width)
        if self.is_pure:
            return made
        cls = tv_tensors.Video if type(self._image) is tv_tensors.Video else tv_tensors.Image
        return made.as_subclass(cls)

    def _finish(self) -> tuple[np.ndarray, np.ndarray] | None:
        if not self._scaled:
            return None
        if self._normalization is not None:
            return self._normalization
        return np.zeros(self.channels, np.float32), np.full(self.channels, 1 / 255, np.float32)

    def _taps(self) -> tuple[Taps, Taps] | None:
        if self._resized is None or self._filter is None:
            return None
        wanted = []
        both = taps_for(self._window, self._resized, *self._filter)
        ends = zip(both, self._cut[:2], self._cut[2:], (self._down, self._across), strict=True)
        for taps, begin, count, mirror in ends:
            order = slice(begin, begin + count)
            first, weights = taps.first[order], taps.weights[order]
            if mirror:
                first, weights = first[::-1].copy(), weights[::-1].copy()
            low, high = sorted((int(first[0]), int(first[-1])))
            wanted.append(Taps(first, weights, low, high + weights.shape[1]))
        rows, columns = wanted
        return rows, columns

    def _fill(
        self,
        source: np.ndarray,
        out: np.ndarray,
        taps: tuple[Taps, Taps] | None,
        finish: tuple[np.ndarray, np.ndarray] | None,
    ) -> None:
        """Make one image: `source` HWC, `out` CHW."""
        if not self._colours and taps is not None:
            self._resample(source, out, taps, finish)
            return
        planes = out if finish is None and not self._colours else np.empty(out.shape, np.uint8)
        if taps is not None:
            self._resample(source, planes, taps, None)
        else:
            self._copy(source, planes)
        flat = planes.reshape(self.channels, -1)
        if self._colours:
            spare = out.reshape(flat.shape) if finish is None else np.empty_like(flat)
            for change in self._colours:
                _change(flat, spare, *change)
                flat, spare = spare, flat
        target = out.reshape(flat.shape)
        if finish is not None:
            photometric.scale_planes(flat, *finish, target)
        elif self._colours and len(self._colours) % 2 == 0:
            target[...] = flat

    def _resample(
        self,
        source: np.ndarray,
        out: np.ndarray,
        taps: tuple[Taps, Taps],
        finish: tuple[np.ndarray, np.ndarray] | None,
    ) -> None:
        size = source.itemsize
        if source.strides[2] == size and source.shape[2] >= self.channels:
            target = out.transpose(1, 2, 0)
            resample_image(
                *(source, *self._origin, *taps, target, scratch),
                rounds_to=_U8,
                normalization=finish,
            )
            return
        for c in range(self.channels):
            part = None if finish is None else (finish[0][c : c + 1], finish[1][c : c + 1])
            plane = source[:, :, c, None]
            resample_image(
                *(plane, *self._origin, *taps, out[c][..., None], scratch),
                rounds_to=_U8,
                normalization=part,
            )

    def _copy(self, source: np.ndarray, out: np.ndarray) -> None:
        split_pixels(self._window_of(source), out)

    def _window_of(self, source: np.ndarray) -> np.ndarray:
        """The pixels that are wanted of an image that keeps its size."""
        top, left = self._cut.top - self._origin[0], self._cut.left - self._origin[1]
        window = source[top : top + self._cut.height, left : left + self._cut.width]
        if self._down or self._across:
            window = window[:: -1 if self._down else 1, :: -1 if self._across else 1]
        return window

    def _pil(self, height: int, width: int, taps: tuple[Taps, Taps] | None) -> Any:
        """A PIL image, in whose memory the result is made where that can be."""
        mode = "L" if self.channels == 1 else "RGB"
        made = new_pil_image(mode, width, height)
        if made is not None and not self._colours:
            source, out = self._source[0], made[1]
            if source.shape[2] == out.shape[2]:
                if taps is not None:
                    resample_image(source, *self._origin, *taps, out, scratch, rounds_to=_U8)
                else:
                    out[...] = self._window_of(source)
                return made[0]
        planes = np.empty((self.channels, height, width), np.uint8)
        self._fill(self._source[0], planes, taps, None)
        pixels = planes[0] if mode == "L" else np.ascontiguousarray(planes.transpose(1, 2, 0))
        return PIL.Image.fromarray(pixels, mode)


@lru_cache
def _of_levels(
    mean: tuple[float, ...], std: tuple[float, ...], channels: int
) -> tuple[np.ndarray, np.ndarray] | None:
    """Numbers to be taken from levels, and factors of the rest."""
    means, stds = np.array(mean, np.float32), np.array(std, np.float32)
    if {means.size, stds.size} - {1, channels} or not stds.all():
        return None
    full = np.ones(channels, np.float32)
    return means * 255 * full, full / (stds * 255)


def _change(source: np.ndarray, out: np.ndarray, name: str, number: Any, pil: bool) -> None:
    """Change colours of planes ``(C, N)``."""
    if name == "brightness":
        photometric.blend_levels(source.reshape(-1), out.reshape(-1), number, 0.0)
    elif name == "contrast":
        if len(source) == 1:
            total = int(source.sum(dtype=np.int64))
        else:
            total = photometric.grey_sum_of_planes(source, pil)
        count = source.shape[1]
        if pil:
            offset = pil_contrast(total, count, number)
        else:
            offset = float(np.float32(total / count)) * (1.0 - number)
        photometric.blend_levels(source.reshape(-1), out.reshape(-1), number, offset)
    elif name == "saturation":
        photometric.saturate_planes(source, out, number, pil)
    elif name == "hue" and pil:
        photometric.turn_pil_planes(source, out, pil_shift(number))
    elif name == "hue":
        photometric.turn_planes(source, out, number % 1.0)
    else:
        photometric.grey_planes(source, out[0], pil)
        out[1:] = out[0]
