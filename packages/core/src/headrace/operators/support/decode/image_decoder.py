"""Arguments and behaviour that all image decoders share."""

from __future__ import annotations

import mmap
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from headrace.errors import ArgumentValueError, BadSampleError, DataTypeError
from headrace.kernels.cpu.decode.pixels import PixelFormat, decode_all
from headrace.kernels.cpu.decode.stored import Region
from headrace.operators.support.argument_types import (
    BoolArg,
    DataTypeArg,
    FloatArg,
    ImageTypeArg,
    IntArg,
    StringArg,
)
from headrace.operators.support.decode.encoded import check_encoded, open_all
from headrace.operators.support.decode.encoded_image import EncodedImage
from headrace.operators.support.lazy_image import LazyImage, LazyWindow
from headrace.operators.support.operator import (
    BatchContext,
    ChunkContext,
    SampleContext,
    SampleOperator,
)
from headrace.operators.support.planning import PlanContext, Planned
from headrace.operators.support.schema import Arg, Input, Spec, data_types
from headrace.tensors.gpu.batch import DeviceBatch
from headrace.tensors.rows import Rows
from headrace.tracebacks import warn_at
from headrace.types import DALIDataType, DALIImageType, to_numpy_type

if TYPE_CHECKING:
    from headrace.kernels.gpu.decode.cache import CacheOptions
    from headrace.kernels.gpu.decode.options import DecoderOptions

ENCODED = Input(
    "input",
    "Encoded images: all bytes of a file as a flat array.",
    dtypes=(DALIDataType.UINT8,),
    device="cpu",
)
DEVICES = ("cpu", "mixed")
SUSPICIOUS_PIXELS = 89_478_485
"""Pillow's limit: a quarter of a GiB of RGB pixels."""
_warned = mmap.mmap(-1, 1)
"""Not 0 once a file was warned of, in this process or in a fork of it."""
LIGHT_ELEMENTS = 28 << 10
"""Elements of an image below which the interpreter's way to it is more than its pixels."""
OUTPUT_DOCS = ("The decoded images, in the layout HWC.",)


DECODE_ARGS: tuple[Arg, ...] = (
    Arg(
        "output_type",
        ImageTypeArg,
        DALIImageType.RGB,
        "Colour space of the output. `GRAY` has one channel, `ANY_DATA` those of the file "
        "(alpha included); `YCbCr` is converted from RGB as ITU-R BT.601 says.",
    ),
    Arg(
        "dtype",
        DataTypeArg,
        DALIDataType.UINT8,
        "Element type of the output: `UINT8`, `UINT16`, `UINT32`, `INT8`, `INT16`, `INT32` or "
        "`FLOAT`. Full intensity is the largest value of an integer type, and 1.0.",
    ),
    Arg(
        "adjust_orientation",
        BoolArg,
        True,
        "Whether images are turned the way their EXIF orientation asks for.",
    ),
    Arg(
        "use_fast_idct",
        BoolArg,
        False,
        "Use libjpeg-turbo's faster and slightly less exact inverse transform, on the CPU.",
    ),
    Arg(
        "jpeg_fancy_upsampling",
        BoolArg,
        False,
        "Interpolate chroma on the GPU, too, as the CPU always does; else it is repeated there.",
    ),
    Arg(
        "max_pixels",
        IntArg,
        None,
        "Most pixels, height times width of the whole image, that a file may announce; one that "
        "announces more is a bad sample, of which nothing is decoded. By default there is no "
        f"limit, but one warning about the first file with more than {SUSPICIOUS_PIXELS:,}.",
    ),
    Arg("affine", BoolArg, True, "Whether decoding threads are tied to cores.", hint=True),
    Arg(
        "hw_decoder_load",
        FloatArg,
        None,
        "Share, 0 to 1, of the JPEG images that the GPU's JPEG engines decode, of those that they "
        "can; the others go to its multiprocessors and the CPU. By default the engines get all: "
        "that is fastest unless many idle processors stand by few engines.",
    ),
    Arg("preallocate_width_hint", IntArg, 0, "Width in pixels that the JPEG engines prepare for."),
    Arg(
        "preallocate_height_hint", IntArg, 0, "Height in pixels that the JPEG engines prepare for."
    ),
    Arg(
        "device_memory_padding",
        IntArg,
        16 << 20,
        "Bytes of device memory that each thread of the GPU's JPEG decoder begins with.",
    ),
    Arg(
        "host_memory_padding",
        IntArg,
        8 << 20,
        "Bytes of page-locked memory that each thread of the GPU's JPEG decoder begins with.",
    ),
    Arg(
        "device_memory_padding_jpeg2k",
        IntArg,
        0,
        "Bytes of device memory that the GPU's JPEG 2000 decoder begins with.",
    ),
    Arg(
        "host_memory_padding_jpeg2k",
        IntArg,
        0,
        "Bytes of page-locked memory that the GPU's JPEG 2000 decoder begins with.",
    ),
    Arg(
        "hybrid_huffman_threshold",
        IntArg,
        1_000_000,
        "Number of pixels from which on a JPEG image that is not decoded by the JPEG engines has "
        "its Huffman codes decoded on the GPU, too.",
    ),
    Arg("memory_stats", BoolArg, False, "Has no effect any more.", deprecated=""),
    Arg("split_stages", BoolArg, False, "Has no effect any more.", deprecated=""),
    Arg("use_chunk_allocator", BoolArg, False, "Has no effect any more.", deprecated=""),
)

CACHE_ARGS: tuple[Arg, ...] = (
    Arg(
        "cache_size",
        IntArg,
        0,
        "Size of the cache of decoded images on the GPU, in MB. Files whose images it has are not "
        "decoded again.",
    ),
    Arg("cache_threshold", IntArg, 0, "Bytes from which on a decoded image is cached."),
    Arg(
        "cache_type",
        StringArg,
        "",
        'Images that are cached: ``"threshold"``, the default, those that come first, as many as '
        'there is room for; ``"largest"`` the largest ones, which the first epoch finds out.',
        choices=("", "threshold", "largest"),
    ),
    Arg(
        "cache_debug",
        BoolArg,
        False,
        "Whether to print when the cache is first used and when it is full.",
    ),
    Arg(
        "cache_batch_copy",
        BoolArg,
        True,
        "Whether the cached images of a batch are copied all at once.",
    ),
)

_DTYPES = data_types("UINT8 UINT16 UINT32 INT8 INT16 INT32 FLOAT")


class ImageDecoder(SampleOperator):
    """Shared code of the image decoders. `has_window`: whether a part of the image is decoded."""

    has_window = False

    def infer(self, encoded: Spec) -> Spec:
        args = self.args
        check_encoded(encoded.ndim)
        if args.dtype not in _DTYPES:
            allowed = ", ".join(t.name for t in _DTYPES)
            raise DataTypeError(
                f"`dtype` must be one of {allowed}, got {args.dtype.name}. Use `fn.cast` on the "
                "decoded images for other types."
            )
        if args.max_pixels is not None and args.max_pixels < 1:
            raise ArgumentValueError(
                f"`max_pixels` is {args.max_pixels}, but must be at least 1; leave it out for no "
                "limit."
            )
        self._wanted = PixelFormat(
            args.output_type.name,
            np.dtype(to_numpy_type(args.dtype)),
            args.adjust_orientation,
            args.use_fast_idct,
        )
        return Spec(args.dtype, 3, "HWC")

    @cached_property
    def gpu_options(self) -> tuple[DecoderOptions, CacheOptions | None]:
        """Options for decoding on the GPU, and for keeping the decoded images, from the
        arguments.
        """
        from headrace.operators.support.decode.mixed import cache_options, decoder_options

        return decoder_options(self.args), cache_options(self.args)

    def gpu(self, c: BatchContext, encoded: Any, *window: Any) -> DeviceBatch:
        from headrace.operators.support.decode.mixed import decode_mixed

        return decode_mixed(self, c, self._wanted, encoded, *window)

    plans_values = True

    def plan(self, c: PlanContext, encoded: Any, *window: Any) -> Planned:
        opened = open_all(encoded.row_list)
        headers = [header for _, header in opened]
        shapes = self._wanted.shapes(headers)
        for error in self.too_large(c, shapes).values():
            raise error
        found = self.regions(c, shapes[:, :2], *window)
        regions: list[Region | None] = [None] * len(headers)
        if found is not None:
            shapes[:, :2] = found[:, 2:] - found[:, :2]
            regions = list(map(tuple, found.tolist()))
        return Planned(shapes, ([data for data, _ in opened], headers, regions))

    def too_large(self, c: PlanContext, shapes: np.ndarray) -> dict[int, BadSampleError]:
        """By position, errors about images of more than `max_pixels`; warns if there is no
        limit.

        `shapes`: of whole images, int64 ``(samples, 2 or more)``: heights and widths first.
        """
        limit = self.args.max_pixels
        pixels = shapes[:, 0] * shapes[:, 1]
        if pixels.max(initial=0) <= (SUSPICIOUS_PIXELS if limit is None else limit):
            return {}
        if limit is not None:
            return {
                k: BadSampleError(
                    f"The image has {shapes[k, 0]} x {shapes[k, 1]} pixels, and `max_pixels` lets "
                    f"{limit:,} through. Raise it if the file is meant to be that large."
                )
                for k in np.flatnonzero(pixels > limit).tolist()
            }
        if not _warned[0]:
            _warned[0] = 1
            k = int(pixels.argmax())
            warn_at(
                self.user_line,
                f"`{self.schema.name}`: {c.source(k) or f'sample {c.indices[k]}'} is an image of "
                f"{shapes[k, 0]} x {shapes[k, 1]} pixels, more than {SUSPICIOUS_PIXELS:,}; a small "
                "file may announce that to take all memory. `max_pixels` makes larger images bad "
                "samples, and silences this if it is large enough.",
            )
        return {}

    def regions(self, c: PlanContext, extents: np.ndarray, *window: Any) -> np.ndarray | None:
        """Regions of upright images to decode; `None` for whole images.

        `extents`: heights and widths, int64 ``(samples, 2)``. Returns int64 ``(samples, 4)``: first
        row and column, and one past the last.
        """
        return None

    returns_lazy = (LazyImage,)

    def cpu(self, c: SampleContext, encoded: np.ndarray, *window: np.ndarray) -> LazyImage:
        data, header, region = c.row
        image = EncodedImage(c, data, header, self._wanted, must_be_complete=region is None)
        if region is None:
            return image
        y0, x0, y1, x1 = region
        return LazyWindow(image, y0, x0, y1 - y0, x1 - x0)

    def cpu_light(self, c: ChunkContext, *_: Rows) -> Rows | None:
        """Decode small images one after the other; each has few pixels to be hot in the cache."""
        data, headers, regions = c.table
        shapes = c.shapes
        if shapes.prod(axis=1).max() > LIGHT_ELEMENTS:
            return None
        out = c.out()
        decode_all(data, headers, regions, self._wanted, out.rows, c.temp)
        return out

    def regions_of_unknown(self, c: BatchContext, extents: np.ndarray) -> np.ndarray | None:
        """`regions` of a batch of which some extents are 0, since they are not known; anything
        will do for those. `None` where that cannot be told.
        """
        return None
