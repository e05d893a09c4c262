"""Operators, and arguments of DALI's operators, that Headrace alone has."""

OPERATORS = {
    *("cache", "decoders.json", "decoders.text"),
    *("readers.arrow", "readers.hdf5", "readers.hf_dataset", "readers.lance", "readers.mix"),
    "readers.parquet",
}
INTERNAL = {"_cache__Load", "_cache__Store"}
ARGUMENTS = {
    *("color_space", "extensions", "fps", "label_transform", "max_pixels", "sampler"),
    *("bucket_by", "buckets", "max_batch"),
    "timestamps",
}


def schema_name(operator: str) -> str:
    """Name that `backend` lists an operator by."""
    *modules, last = operator.split(".")
    return "__".join([*modules, "".join(part.capitalize() for part in last.split("_"))])
