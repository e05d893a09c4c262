"""A class-folder data set of real photographs, cut from those that ship with two Python packages.

=========================  =========================  ===============
photograph                 by                         licence
=========================  =========================  ===============
scikit-image: astronaut    NASA                       public domain
scikit-image: chelsea      Stefan van der Walt        CC0
scikit-image: coffee       Rachel Michetti            CC0
scikit-image: hubble       NASA / HubbleSite          public domain
scikit-image: retina       Mikael Häggström           CC0
scikit-image: rocket       SpaceX                     public domain
scikit-learn: china        danielbuechele (Flickr)    CC BY 2.0
scikit-learn: flower       vultilion (Flickr)         CC BY 2.0
=========================  =========================  ===============

The pieces are cut out, resized, and changed in brightness. Nothing is downloaded.
"""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import cv2
import numpy as np
import simplejpeg


def photographs() -> dict[str, np.ndarray]:
    """The photographs by name, uint8 RGB."""
    from skimage import data
    from sklearn.datasets import load_sample_images

    china, flower = load_sample_images().images
    found = {
        "astronaut": data.astronaut(),
        "chelsea": data.chelsea(),
        "coffee": data.coffee(),
        "hubble": data.hubble_deep_field(),
        "retina": data.retina(),
        "rocket": data.rocket(),
        "china": china,
        "flower": flower,
    }
    return {name: np.ascontiguousarray(image[..., :3]) for name, image in found.items()}


def write_dataset(
    folder: Path,
    count: int,
    *,
    seed: int = 0,
    quality: int = 90,
    on_written: Callable[[], object] = lambda: None,
) -> Path:
    """Write `count` JPEGs of about 400x550 pixels (4:2:0) into a folder for each photograph.

    Each is a random piece of its photograph, of varying size and brightness. A folder that already
    has them is kept. `on_written` is called after each file. Returns `folder`.

    Raises
    ------
    FileExistsError
        If the folder has other JPEGs, too, which would be taken for a part of the data set.
    """
    found = {path.name for path in folder.glob("*/*.jpg")}
    wanted = {f"{number:05}.jpg" for number in range(count)}
    if found == wanted:
        return folder
    if found - wanted:
        raise FileExistsError(
            f"{folder} holds {len(found)} images, among them {min(found - wanted)}, where {count} "
            "are to be made: remove it, or choose another folder."
        )
    rng = np.random.default_rng(seed)
    sources = photographs()
    names = sorted(sources)
    for number in range(count):
        name = names[number % len(names)]
        target = folder / name
        target.mkdir(parents=True, exist_ok=True)
        piece = _piece(sources[name], rng)
        encoded = simplejpeg.encode_jpeg(piece, quality=quality, colorsubsampling="420")
        (target / f"{number:05}.jpg").write_bytes(encoded)
        on_written()
    return folder


def _piece(image: np.ndarray, rng: np.random.Generator) -> np.ndarray:
    height, width = (int(v * rng.uniform(0.9, 1.1)) for v in (400, 550))
    scale = rng.uniform(0.6, 1.0) * min(image.shape[0] / height, image.shape[1] / width)
    h, w = int(height * scale), int(width * scale)
    y = int(rng.integers(0, image.shape[0] - h + 1))
    x = int(rng.integers(0, image.shape[1] - w + 1))
    piece = cv2.resize(image[y : y + h, x : x + w], (width, height), interpolation=cv2.INTER_CUBIC)
    # An enlarged photograph is smooth; a little grain brings the file to the 56 kB that a
    # photograph of this size takes.
    grain = rng.normal(0, 1.5, piece.shape[:2])[..., None]
    return np.clip(piece * rng.uniform(0.8, 1.1) + grain, 0, 255).astype(np.uint8)
