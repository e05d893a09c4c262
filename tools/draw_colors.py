"""Draws ``docs/images/colors.png``: what the colour operators do to two photographs.

Run it as ``hatch run test:python tools/draw_colors.py``; it needs scikit-image and scikit-learn.
"""

from __future__ import annotations

import sys
from pathlib import Path

import cv2
import numpy as np

_ROOT = Path(__file__).parents[1]
sys.path.insert(0, str(_ROOT))

from examples.demo.contact_sheet import write_contact_sheet  # noqa: E402

from examples.demo.photographs import photographs  # noqa: E402
from headrace import Pipeline, fn, types  # noqa: E402

_SIZE = 120


def _squares(names: tuple[str, ...]) -> list[np.ndarray]:
    """Squares out of the middle of photographs."""
    found = []
    pictures = photographs()
    for name in names:
        image = pictures[name]
        side = min(image.shape[:2])
        y, x = (image.shape[0] - side) // 2, (image.shape[1] - side) // 2
        square = image[y : y + side, x : x + side]
        found.append(cv2.resize(square, (_SIZE, _SIZE), interpolation=cv2.INTER_AREA))
    return found


def main() -> None:
    """Write the picture."""
    images = _squares(("coffee", "flower"))
    pipe = Pipeline(batch_size=len(images), num_threads=1, device_id=None)
    with pipe:
        x = fn.external_source(source=lambda: images, layout="HWC")
        grey = fn.color_space_conversion(x, image_type=types.RGB, output_type=types.GRAY)
        shown = {
            "as it is": x,
            "hue=60": fn.hue(x, hue=60.0),
            "hue=-60": fn.hue(x, hue=-60.0),
            "saturation=0.3": fn.saturation(x, saturation=0.3),
            "saturation=2": fn.saturation(x, saturation=2.0),
            "hsv: value=0.5": fn.hsv(x, value=0.5),
            "twist: contrast=0.5": fn.color_twist(x, contrast=0.5),
            "twist: brightness=1.4": fn.color_twist(x, brightness=1.4),
            "twist: all of it": fn.color_twist(
                x, hue=25.0, saturation=1.4, brightness=1.1, contrast=0.8
            ),
            "RGB to GRAY": fn.color_space_conversion(
                grey, image_type=types.GRAY, output_type=types.RGB
            ),
            "RGB to BGR": fn.color_space_conversion(x, image_type=types.RGB, output_type=types.BGR),
            "RGB to YCbCr": fn.color_space_conversion(
                x, image_type=types.RGB, output_type=types.YCbCr
            ),
        }
        pipe.set_outputs(*shown.values())
    outputs = [out.as_array() for out in pipe.run()]
    names = list(shown)
    half = len(names) // 2
    rows = [(k, image) for image in range(len(images)) for k in range(half)]
    rows += [(k, image) for image in range(len(images)) for k in range(half, len(names))]
    sheet = np.stack([outputs[k][image] for k, image in rows]).transpose(0, 3, 1, 2)
    labels = [names[k] for k, _ in rows]
    write_contact_sheet(_ROOT / "docs/images/colors.png", sheet, labels, columns=half)


if __name__ == "__main__":
    main()
