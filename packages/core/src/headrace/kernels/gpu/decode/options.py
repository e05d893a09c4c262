"""Options of the device's decoders."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class DecoderOptions:
    """Options of the device's decoders."""

    hardware_load: float | None = None
    """Share of the images that the JPEG engines could decode and that they get, 0 to 1; `None` for
    all of them.
    """
    fancy_upsampling: bool = False
    hybrid_huffman_threshold: int = 1_000_000
    preallocate_width: int = 0
    preallocate_height: int = 0
    device_padding_bytes: int = 16 << 20
    host_padding_bytes: int = 8 << 20
    device_padding_jpeg2k_bytes: int = 0
    host_padding_jpeg2k_bytes: int = 0

    def __hash__(self) -> int:
        # One pipeline hardly ever has two that differ in anything else.
        return hash((self.hardware_load, self.fancy_upsampling, self.preallocate_width))

    def text(self) -> str:
        """The options of nvImageCodec's decoders, in its words."""
        by_decoder = {
            "nvjpeg_cuda_decoder": {
                "fancy_upsampling": int(self.fancy_upsampling),
                "hybrid_huffman_threshold": self.hybrid_huffman_threshold,
                "device_memory_padding": self.device_padding_bytes,
                "host_memory_padding": self.host_padding_bytes,
            },
            "nvjpeg2k_cuda_decoder": {
                "device_memory_padding": self.device_padding_jpeg2k_bytes,
                "host_memory_padding": self.host_padding_jpeg2k_bytes,
            },
        }
        return " ".join(
            f"{decoder}:{name}={value}"
            for decoder, options in by_decoder.items()
            for name, value in options.items()
        )
