"""An iterable class that returns lists of arrays, as an external source."""

import os
import random

import numpy as np
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali.pipeline import Pipeline


class ExternalInputIterator(object):
    def __init__(self, batch_size, images_dir):
        self.batch_size = batch_size
        self.files = [
            os.path.join(d, name) for d, _, names in sorted(os.walk(images_dir)) for name in names
        ]
        self.files.sort()
        random.Random(4).shuffle(self.files)

    def __iter__(self):
        self.i = 0
        self.n = len(self.files)
        return self

    def __next__(self):
        batch = []
        labels = []
        for _ in range(self.batch_size):
            with open(self.files[self.i % self.n], "rb") as f:
                batch.append(np.frombuffer(f.read(), dtype=np.uint8))
            labels.append(np.array([self.i % 7], dtype=np.uint8))
            self.i += 1
        return (batch, labels)


def main(image_dir):
    batch_size = 5
    eii = ExternalInputIterator(batch_size, image_dir)
    pipe = Pipeline(batch_size=batch_size, num_threads=2, device_id=None)
    with pipe:
        jpegs, labels = fn.external_source(source=eii, num_outputs=2, dtype=types.UINT8)
        decode = fn.decoders.image(jpegs, device="cpu", output_type=types.RGB)
        enhance = fn.brightness_contrast(decode, contrast=2)
        pipe.set_outputs(enhance, labels)
    pipe.build()
    batches = []
    for _ in range(6):
        images, labels = pipe.run()
        batches.append([images.at(i) for i in range(len(images))] + [labels.as_array()])
    return batches
