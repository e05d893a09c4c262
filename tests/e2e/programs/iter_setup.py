"""External sources fed by hand: `iter_setup` and `feed_input` within a class."""

import numpy as np
import nvidia.dali.ops as ops
import nvidia.dali.types as types
from nvidia.dali.pipeline import Pipeline


class FedPipeline(Pipeline):
    def __init__(self, batch_size, num_threads, device_id, data):
        super(FedPipeline, self).__init__(batch_size, num_threads, device_id)
        self.iterator = iter(data)
        self.input = ops.ExternalSource()
        self.input_label = ops.ExternalSource()
        self.cast = ops.Cast(device="cpu", dtype=types.INT32)
        self.flip = ops.Flip(vertical=1, horizontal=0)

    def define_graph(self):
        self.images = self.input(name="images")
        self.labels = self.input_label()
        output = self.cast(self.flip(self.images))
        return (output, self.labels)

    def iter_setup(self):
        images, labels = next(self.iterator)
        self.feed_input(self.images, images, layout="HWC")
        self.feed_input(self.labels, labels)


def main(image_dir):
    rng = np.random.default_rng(0)
    data = [
        (rng.integers(0, 255, (4, 5, 6, 3)).astype(np.uint8), [np.int64([k, i]) for i in range(4)])
        for k in range(6)
    ]
    pipe = FedPipeline(4, 2, None, data)
    pipe.build()
    batches = []
    while True:
        try:
            images, labels = pipe.run()
        except StopIteration:
            break
        batches.append((images.as_array(), labels.as_array()))
    return batches
