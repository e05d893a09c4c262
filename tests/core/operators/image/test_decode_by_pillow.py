"""GIF, AVIF and HEIC: Pillow's pixels of the first image, as any other image's."""

from __future__ import annotations

import io
import sys

import numpy as np
import pillow_heif
import pytest
from PIL import Image, ImageOps

from headrace import fn, pipeline_def, types
from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode import convert, pillow_codecs
from headrace.types import DALIImageType

pillow_heif.register_heif_opener()


def picture(mode: str = "RGB") -> Image.Image:
    blocks = np.random.default_rng(0).integers(0, 255, (5, 8, 3))
    found = Image.fromarray(np.kron(blocks, np.ones((8, 8, 1))).astype(np.uint8))
    if mode == "RGBA":
        found.putalpha(128)
        return found
    return found.convert(mode)


def saved(image: Image.Image, kind: str, **options: object) -> np.ndarray:
    memory = io.BytesIO()
    image.save(memory, kind, **options)
    return np.frombuffer(memory.getvalue(), np.uint8)


def files() -> dict[str, np.ndarray]:
    turned = Image.Exif()
    turned[0x0112] = 6
    rest = [ImageOps.flip(picture())]
    return {
        "gif": saved(picture(), "GIF"),
        "gray gif": saved(picture("L"), "GIF"),
        "animated gif": saved(picture(), "GIF", save_all=True, append_images=rest),
        "avif": saved(picture(), "AVIF"),
        "avif of several": saved(picture(), "AVIF", save_all=True, append_images=rest),
        "avif with alpha": saved(picture("RGBA"), "AVIF"),
        "turned avif": saved(picture(), "AVIF", exif=turned),
        "heic": saved(picture(), "HEIF"),
        "heic with alpha": saved(picture("RGBA"), "HEIF"),
        "turned heic": saved(picture(), "HEIF", exif=turned),
    }


FILES = files()


def run(data: np.ndarray, graph, **options):
    @pipeline_def(batch_size=1, num_threads=1, device_id=None, **options)
    def define():
        return graph(fn.external_source(lambda: [data]))

    return [np.array(out[0]) for out in define().run()]


@pytest.mark.parametrize("name", FILES)
def test_pixels(name):
    data = FILES[name]
    with Image.open(io.BytesIO(data.tobytes())) as image:
        rgb = np.array(ImageOps.exif_transpose(image).convert("RGB"))
    gray, ycbcr = np.empty((*rgb.shape[:2], 1), np.uint8), np.empty_like(rgb)
    convert.gray(rgb, gray)
    convert.ycbcr(rgb, ycbcr)
    expected = {"RGB": rgb, "BGR": rgb[..., ::-1], "GRAY": gray, "YCbCr": ycbcr}

    def graph(encoded):
        decode = fn.decoders.image
        colors = [decode(encoded, output_type=DALIImageType[c]) for c in expected]
        window = {"start": (3, 4), "shape": (6, 7), "axes": (0, 1)}
        part = fn.decoders.image_slice(encoded, **window)
        whole = decode(encoded, output_type=types.ANY_DATA)
        return *colors, part, whole, fn.peek_image_shape(encoded)

    *colors, part, whole, shape = run(data, graph)
    for found, wanted in zip(colors, expected.values(), strict=True):
        np.testing.assert_array_equal(found, wanted)
    np.testing.assert_array_equal(part, rgb[3:9, 4:11])
    np.testing.assert_array_equal(whole[..., :3], rgb)
    assert whole.shape[2] == (4 if "alpha" in name else 3)
    assert shape.tolist()[:2] == list(rgb.shape[:2])


@pytest.mark.parametrize("name", ["gif", "avif", "heic"])
@pytest.mark.parametrize("share", [0.1, 0.6])
def test_files_that_are_cut_off(name, share):
    data = FILES[name][: int(share * len(FILES[name]))]
    with pytest.raises(BadSampleError, match=f"{name.upper()}.*cut off or damaged"):
        run(data, lambda encoded: (fn.decoders.image(encoded),))


@pytest.mark.parametrize(("name", "module"), [("gif", "PIL"), ("heic", "pillow_heif")])
def test_without_pillow_the_error_says_what_to_install(name, module, monkeypatch):
    monkeypatch.setitem(sys.modules, module, None)
    for cached in (pillow_codecs._pillow, pillow_codecs._know_heic):
        cached.cache_clear()
    with pytest.raises(BadSampleError, match=r"pip install 'headrace\[images\]'"):
        run(FILES[name], lambda encoded: (fn.decoders.image(encoded),))
