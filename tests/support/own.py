"""Operators, and arguments of DALI's operators, that Headrace alone has."""

OPERATORS = {
    *("cache", "cutmix", "decoders.json", "decoders.text", "mixup", "mosaic"),
    *("readers.arrow", "readers.hdf5", "readers.hf_dataset", "readers.lance", "readers.mix"),
    *("readers.pack", "readers.parquet"),
}
INTERNAL = {"_cache__Load", "_cache__Store", "_mix__Boxes", "_mix__Regions", "_mix__Soft"}
ARGUMENTS = {
    *("color_space", "extensions", "fps", "label_transform", "max_pixels", "sampler"),
    *("bucket_by", "buckets", "max_batch", "side_data"),
    *(
        "audio_downmix",
        "audio_rate",
        "clip_starts",
        "clips_per_video",
        "enable_audio",
        "timestamps",
    ),
}
_READERS = ("readers.video", "readers.video_resize", "experimental.readers.video")
OF_OPERATORS = {
    **{
        name: {"adjust_orientation", "frames"}
        for name in (*_READERS, "video_reader", "video_reader_resize")
    },
    **{
        name: {"adjust_orientation"}
        for name in ("decoders.video", "experimental.decoders.video", "experimental.inputs.video")
    },
}
"""Arguments of single operators whose names DALI has elsewhere."""


def schema_name(operator: str) -> str:
    """Name that `backend` lists an operator by."""
    *modules, last = operator.split(".")
    return "__".join([*modules, "".join(part.capitalize() for part in last.split("_"))])
