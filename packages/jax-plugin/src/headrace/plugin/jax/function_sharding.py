"""The batch of a pipeline as global arrays over the devices of a sharding, and back."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from headrace.errors import ShapeError
from headrace.plugin.jax.assembly import of_parts
from headrace.plugin.jax.convert import joined

if TYPE_CHECKING:
    import jax

    from headrace.plugin.jax.assembly import Rows
    from headrace.plugin.jax.batch_sharding import BatchSharding


def as_global(rows: Rows, wanted: BatchSharding) -> jax.Array:
    """The array of which `rows` are those of this process, cut among its devices."""
    count = len(wanted.parts)
    size, rest = divmod(len(rows), count)
    if rest:
        raise ShapeError(
            f"The batch has {len(rows)} samples, which `sharding` cannot cut into {count} equal "
            f"parts for the devices of this process. Use a multiple of {count} as the batch size, "
            "and let readers fill the last batch (`pad_last_batch=True`)."
        )
    if count == 1:
        return of_parts([rows], wanted)
    return of_parts([rows[k * size : (k + 1) * size] for k in range(count)], wanted)


def own_rows(value: jax.Array, output: int) -> Any:
    """The rows that this process has of an array: in one piece, along the batch.

    An array whose parts are all here may be cut in any way.
    """
    if value.is_fully_addressable:
        return value
    found: dict[int, jax.Array] = {}
    for shard in value.addressable_shards:
        if shard.data.shape[1:] != value.shape[1:]:
            raise ShapeError(
                f"Output {output} of the function is cut along other axes than the first among "
                f"the processes ({value.sharding}); only the axis of the batch can be."
            )
        start = shard.index[0].start if shard.index else None
        found.setdefault(start or 0, shard.data)
    parts = [found[start] for start in sorted(found)]
    return parts[0] if len(parts) == 1 else joined(parts)
