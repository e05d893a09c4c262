"""Groups of images that are resampled in one call without the GIL."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.kernels.cpu import resample_images as _kernels
from headrace.operators.support.lazy_image import LazyImage
from headrace.operators.support.resize.resized_image import ResizedImage
from headrace.tensors.addresses import addresses_of

if TYPE_CHECKING:
    from headrace.operators.support.operator import ChunkContext
    from headrace.tensors.rows import Rows


def resample_group(
    c: ChunkContext,
    images: Sequence[Any],
    out: Rows,
    *,
    windows: tuple[np.ndarray, np.ndarray] | None = None,
    mirrors: Sequence[bool] | None = None,
    normalization: tuple[np.ndarray, np.ndarray] | None = None,
    planar: bool = False,
) -> list[int]:
    """Write images, or windows of them, as `ResizedImage` does one."""
    like: ResizedImage | None = None
    key = None
    records, datas, places = [], [], []
    for k, image in enumerate(images):
        if type(image) is not ResizedImage:
            continue
        source = image.resampled_source()
        if source is None:
            continue
        data, color, fast_idct, height, width, top, left, must_be_complete = source
        channels = image.shape[2]
        if like is None and color:
            like, key = image, (channels, color, fast_idct)
        elif (channels, color, fast_idct) != key:
            continue
        rows, columns = image.axes
        mirror = mirrors is not None and mirrors[k]
        records.append(
            (0, data.size, height, width, top, left, must_be_complete, mirror, rows, columns, 0)
        )
        datas.append(data)
        places.append(k)
    if like is None or not _kernels.can_make(out.dtype):
        return list(range(len(images)))
    assert key is not None
    table = np.array(records, _kernels.IMAGE)
    table["data"] = addresses_of(datas)
    table["out"] = out.addresses[places]
    if windows is not None:
        for axis, name in enumerate(("rows", "columns")):
            found = table[name]
            found["begin"] += found["step"] * windows[0][places, axis]
            found["length"] = windows[1][places, axis]
    if not (table["rows"]["length"].all() and table["columns"]["length"].all()):
        return list(range(len(images)))
    channels, color, fast_idct = key
    part, good = _kernels.resampling_loop(
        table,
        channels,
        color,
        out.dtype,
        antialias=like.antialias,
        fast_idct=fast_idct,
        rounds_to=like.rounds_to,
        normalization=normalization,
        planar=planar,
    )
    c.loop(len(table), part)
    done = {k for k, is_good in zip(places, good.tolist(), strict=True) if is_good}
    return [k for k in range(len(images)) if k not in done]


def write_group(c: ChunkContext, images: Sequence[LazyImage | np.ndarray]) -> Rows:
    """Write the images into the memory of the only output."""
    out = c.out()
    for k in resample_group(c, images, out):
        c.attempt(k, _write, images[k], out[k])
    return out


def _write(_: Any, image: LazyImage | np.ndarray, out: np.ndarray) -> None:
    if isinstance(image, LazyImage):
        height, width, _ = image.shape
        image = image.region(0, 0, height, width, lambda *_: out)
    if image is not out:
        out[...] = image
