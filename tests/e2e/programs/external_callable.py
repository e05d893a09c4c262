"""A callable that returns one sample at a time and ends its epoch by StopIteration."""

import numpy as np
from nvidia.dali import fn, pipeline_def, types


class ExternalInputCallable:
    def __init__(self, batch_size, count):
        self.shards = 2
        self.full_iterations = count // batch_size
        self.perm = None
        self.last_seen_epoch = None
        self.count = count

    def __call__(self, sample_info):
        if sample_info.iteration >= self.full_iterations:
            raise StopIteration()
        if self.last_seen_epoch != sample_info.epoch_idx:
            self.last_seen_epoch = sample_info.epoch_idx
            self.perm = np.random.default_rng(42 + sample_info.epoch_idx).permutation(self.count)
        number = self.perm[sample_info.idx_in_epoch]
        table = np.arange(number, number + 12, dtype=np.float32).reshape(3, 4)
        return table, np.int32([sample_info.idx_in_batch, number])


@pipeline_def(batch_size=4, num_threads=2, device_id=None, prefetch_queue_depth=3)
def numbers(source):
    table, label = fn.external_source(
        source=source, num_outputs=2, batch=False, dtype=[types.FLOAT, types.INT32]
    )
    table = table * 2 + fn.cast(label[1], dtype=types.FLOAT)
    return table, label, table.shape()


def main(image_dir):
    pipe = numbers(ExternalInputCallable(4, 14))
    pipe.build()
    batches = []
    for epoch in range(3):
        while True:
            try:
                table, label, shape = pipe.run()
            except StopIteration:
                break
            batches.append((table.as_array(), label.as_array(), shape.as_array()))
        pipe.reset()
        batches.append((np.array([epoch]),))
    return batches
