"""The calls beneath `run`: schedule, share, release; several pipelines, one for each shard."""

import numpy as np
import nvidia.dali.fn as fn
from nvidia.dali.pipeline import Pipeline


def shard_pipeline(image_dir, shard, shards):
    pipe = Pipeline(batch_size=4, num_threads=1, device_id=None, prefetch_queue_depth=2)
    with pipe:
        data, labels = fn.readers.file(
            file_root=image_dir,
            shard_id=shard,
            num_shards=shards,
            random_shuffle=True,
            initial_fill=11,
            seed=19,
            pad_last_batch=True,
            stick_to_shard=False,
            name="Reader",
        )
        shapes = fn.peek_image_shape(data)
        pipe.set_outputs(shapes, labels)
    return pipe


def main(image_dir):
    pipes = [shard_pipeline(image_dir, k, 3) for k in range(3)]
    for pipe in pipes:
        pipe.build()
    batches = []
    for pipe in pipes:
        pipe.schedule_run()
    for _ in range(7):
        step = []
        for pipe in pipes:
            shapes, labels = pipe.share_outputs()
            step += [np.array(shapes.as_array()), np.array(labels.as_array())]
            pipe.release_outputs()
            pipe.schedule_run()
        batches.append(step)
    meta = pipes[1].reader_meta("Reader")
    batches.append([np.array([meta[k] for k in sorted(meta)])])
    return batches
