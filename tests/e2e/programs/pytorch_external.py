"""An iterable of batches that stops, in a generic PyTorch iterator, reset by hand."""

import glob
import os
from random import Random

import numpy as np
from nvidia.dali.pipeline import Pipeline
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali.plugin.pytorch import DALIGenericIterator as PyTorchIterator
from nvidia.dali.plugin.pytorch import LastBatchPolicy


class ExternalInputIterator(object):
    def __init__(self, batch_size, images_dir, device_id, num_gpus):
        self.images_dir = images_dir
        self.batch_size = batch_size
        self.files = sorted(glob.glob(os.path.join(images_dir, "*", "*.jpg")))
        self.data_set_len = len(self.files)
        self.files = self.files[
            self.data_set_len * device_id // num_gpus : self.data_set_len
            * (device_id + 1)
            // num_gpus
        ]
        self.n = len(self.files)

    def __iter__(self):
        self.i = 0
        Random(3).shuffle(self.files)
        return self

    def __next__(self):
        batch = []
        labels = []
        if self.i >= self.n:
            self.__iter__()
            raise StopIteration
        for _ in range(self.batch_size):
            jpeg_filename = self.files[self.i % self.n]
            batch.append(np.fromfile(jpeg_filename, dtype=np.uint8))
            labels.append(np.array([int(os.path.basename(jpeg_filename)[:3])], dtype=np.int64))
            self.i += 1
        return (batch, labels)

    def __len__(self):
        return self.data_set_len

    next = __next__


def ExternalSourcePipeline(batch_size, num_threads, device_id, external_data):
    pipe = Pipeline(batch_size, num_threads, device_id)
    with pipe:
        jpegs, labels = fn.external_source(source=external_data, num_outputs=2)
        images = fn.decoders.image(jpegs, device="cpu")
        images = fn.resize(images, resize_x=24, resize_y=24)
        output = fn.cast(images, dtype=types.FLOAT)
        pipe.set_outputs(output, labels)
    return pipe


def main(image_dir):
    eii = ExternalInputIterator(8, image_dir, 0, 1)
    pipe = ExternalSourcePipeline(batch_size=8, num_threads=2, device_id=None, external_data=eii)
    pii = PyTorchIterator(
        pipe,
        output_map=["data", "label"],
        size=len(eii),
        last_batch_padded=True,
        last_batch_policy=LastBatchPolicy.PARTIAL,
    )
    results = []
    for _e in range(3):
        for i, data in enumerate(pii):
            results.append([np.array(i)] + [data[0][k].numpy().copy() for k in ("data", "label")])
        pii.reset()
    return results
