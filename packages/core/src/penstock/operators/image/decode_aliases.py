"""The names that image decoders had in earlier versions of DALI."""

from __future__ import annotations

from penstock.operators.image.decode_image import DecodeImage
from penstock.operators.image.decode_image_crop import DecodeImageCrop
from penstock.operators.image.decode_image_random_crop import DecodeImageRandomCrop
from penstock.operators.image.decode_image_slice import DecodeImageSlice
from penstock.operators.support.registry import register

for _decoder, _suffix in (
    (DecodeImage, ""),
    (DecodeImageCrop, "_crop"),
    (DecodeImageRandomCrop, "_random_crop"),
    (DecodeImageSlice, "_slice"),
):
    for _old in (f"image_decoder{_suffix}", f"experimental.decoders.image{_suffix}"):
        register(
            _decoder.schema.with_name(_old, deprecated=f"decoders.image{_suffix}", hidden=True)
        )
