"""`decoders.image`."""

from __future__ import annotations

from headrace.operators.support.decode.image_decoder import (
    CACHE_ARGS,
    DECODE_ARGS,
    DEVICES,
    ENCODED,
    OUTPUT_DOCS,
    ImageDecoder,
)
from headrace.operators.support.operator import operator
from headrace.operators.support.schema import OldName


@operator(
    "decoders.image",
    old_names=("image_decoder", OldName("experimental.decoders.image", dynamic=True)),
    inputs=ENCODED,
    args=(*DECODE_ARGS, *CACHE_ARGS),
    output_docs=OUTPUT_DOCS,
    devices=DEVICES,
)
class DecodeImage(ImageDecoder):
    """Decodes images: JPEG, PNG, TIFF, WebP, BMP, PNM (P1 to P6), JPEG 2000, GIF, AVIF and HEIC.

    What a file is shows in its first bytes; its name does not matter. Of a file with several
    images the first one counts. A crop, slice or resize that alone reads the output makes the
    decoder skip what it does not need.

    Examples
    --------
    >>> encoded, labels = fn.readers.file(file_root="images")
    >>> images = fn.decoders.image(encoded)
    >>> masks = fn.decoders.image(encoded, output_type=types.GRAY)
    """
