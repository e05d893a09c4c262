"""Detection-like data of varying length: a ragged iterator, padding and validation of outputs."""

import numpy as np
import nvidia.dali as dali
from nvidia.dali import fn, types
from nvidia.dali.plugin.pytorch import DALIRaggedIterator, LastBatchPolicy


class Boxes:
    def __iter__(self):
        self.k = 0
        return self

    def __next__(self):
        if self.k == 4:
            raise StopIteration
        rng = np.random.default_rng(self.k)
        self.k += 1
        boxes = [rng.uniform(0, 9, (n, 4)).astype(np.float32) for n in (2, 5, 1)]
        images = [rng.integers(0, 255, (8 + n, 9, 3)).astype(np.uint8) for n in (1, 2, 3)]
        return images, boxes


@dali.pipeline_def(
    batch_size=3,
    num_threads=2,
    device_id=None,
    output_dtype=[types.FLOAT, types.FLOAT, types.INT64],
    output_ndim=[3, 2, 1],
)
def detection(source):
    images, boxes = fn.external_source(
        source=source, num_outputs=2, layout=["HWC", None], cycle="raise"
    )
    count = boxes.shape()[0:1]
    images = fn.normalize(images, axes=[0, 1], batch=False)
    boxes = fn.slice(boxes, start=[2], end=[4], axes=[1]) - boxes[:, 0:2] + 1
    return images, boxes, count


def main(image_dir):
    it = DALIRaggedIterator(
        [detection(Boxes())],
        output_map=["image", "boxes", "count"],
        output_types=[
            DALIRaggedIterator.SPARSE_LIST_TAG,
            DALIRaggedIterator.SPARSE_LIST_TAG,
            DALIRaggedIterator.DENSE_TAG,
        ],
        auto_reset=True,
        last_batch_policy=LastBatchPolicy.FILL,
    )
    results = []
    for _epoch in range(2):
        for (step,) in it:
            results.append(
                [t.numpy() for t in step["image"]]
                + [t.numpy() for t in step["boxes"]]
                + [step["count"].numpy()]
            )
    return results
