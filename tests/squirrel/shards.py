"""Writes Squirrel's shards without Squirrel: MessagePack by the letter of its specification."""

from __future__ import annotations

import gzip
import json
import pickle
import struct
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy as np


def packed(value: Any) -> bytes:
    if isinstance(value, np.ndarray):
        plain = value.dtype.kind not in "OV"
        return packed(
            {
                b"nd": True,
                b"type": value.dtype.str if plain else value.dtype.descr,
                b"kind": b"" if plain else value.dtype.kind.encode(),
                b"shape": value.shape,
                b"data": pickle.dumps(value) if value.dtype.kind == "O" else value.tobytes(),
            }
        )
    if isinstance(value, np.generic):
        return packed({b"nd": False, b"type": value.dtype.str, b"data": value.tobytes()})
    if isinstance(value, complex):
        return packed({b"complex": True, b"data": repr(value)})
    if value is None or isinstance(value, bool):
        return bytes([{None: 0xC0, False: 0xC2, True: 0xC3}[value]])
    if isinstance(value, int):
        return _packed_int(value)
    if isinstance(value, float):
        return b"\xcb" + struct.pack(">d", value)
    if isinstance(value, str):
        data = value.encode()
        return _sized(len(data), (0xA0, 32), (0xD9, 0xDA, 0xDB)) + data
    if isinstance(value, bytes):
        return _sized(len(value), None, (0xC4, 0xC5, 0xC6)) + value
    if isinstance(value, (list, tuple)):
        head = _sized(len(value), (0x90, 16), (None, 0xDC, 0xDD))
        return head + b"".join(map(packed, value))
    if isinstance(value, dict):
        head = _sized(len(value), (0x80, 16), (None, 0xDE, 0xDF))
        return head + b"".join(packed(k) + packed(v) for k, v in value.items())
    raise TypeError(type(value))


def _packed_int(value: int) -> bytes:
    if 0 <= value < 128:
        return bytes([value])
    if -32 <= value < 0:
        return bytes([value + 256])
    forms = "BHIQ" if value >= 0 else "bhiq"
    for number, form in enumerate(forms):
        try:
            data = struct.pack(">" + form, value)
        except struct.error:
            continue
        return bytes([(0xCC if value >= 0 else 0xD0) + number]) + data
    raise OverflowError(value)


def _sized(size: int, short: tuple[int, int] | None, codes: Sequence[int | None]) -> bytes:
    if short is not None and size < short[1]:
        return bytes([short[0] + size])
    for code, form, limit in zip(codes, "BHI", (1 << 8, 1 << 16, 1 << 32), strict=True):
        if code is not None and size < limit:
            return bytes([code]) + struct.pack(">" + form, size)
    raise OverflowError(size)


def write_shard(path: Path, samples: Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_bytes(gzip.compress(b"".join(map(packed, samples)), 1))
    return path


def write_json_shard(path: Path, samples: Sequence[Any]) -> Path:
    path.parent.mkdir(parents=True, exist_ok=True)
    lines = "".join(json.dumps(sample, default=_jsonable) + "\n" for sample in samples)
    path.write_bytes(gzip.compress(lines.encode(), 1))
    return path


def _jsonable(value: Any) -> Any:
    if isinstance(value, np.ndarray):
        return {"data": value.tolist(), "type": value.dtype.str, "shape": value.shape}
    return value.item()


def numbered(folder: Path, counts: Sequence[int], extent: int = 6) -> Path:
    """Shards of `counts` samples: images of ragged shapes and their numbers over all shards."""
    number = 0
    for shard, count in enumerate(counts):
        samples = []
        for _ in range(count):
            rng = np.random.default_rng(number)
            shape = (extent + number % 3, extent, 3)
            samples.append(
                {
                    "image": rng.integers(0, 256, shape, np.uint8),
                    "label": np.int64(number),
                    "name": f"sample {number}",
                }
            )
            number += 1
        write_shard(folder / f"shard_{shard:03}.gz", samples)
    return folder
