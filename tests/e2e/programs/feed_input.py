"""InputQueues loops: by name, ahead of the run, as arguments of the run; batches of varying size."""

import numpy as np
from nvidia.dali import fn, pipeline_def, types


@pipeline_def(batch_size=8, num_threads=2, device_id=None)
def resized():
    images = fn.external_source(device="cpu", name="images", layout="HWC")
    sizes = fn.external_source(name="sizes", dtype=types.FLOAT, ndim=1)
    resized = fn.resize(images, size=sizes, dtype=types.FLOAT)
    return resized, images.shape(dtype=types.INT32), fn.full_like(sizes, 3)


@pipeline_def(batch_size=8, num_threads=2, device_id=None, prefetch_queue_depth=1)
def scaled():
    values = fn.external_source(name="values")
    factor = fn.external_source(name="factor", no_copy=True)
    return values * factor, values


def main(image_dir):
    rng = np.random.default_rng(1)
    pipe = resized()
    pipe.build()
    batches = []

    def feed(k):
        n = 2 + k % 3
        images = [rng.integers(0, 255, (10 + i, 12 + k, 3)).astype(np.uint8) for i in range(n)]
        pipe.feed_input("images", images)
        pipe.feed_input("sizes", [np.float32([7 + i, 9]) for i in range(n)])

    for k in range(pipe.input_feed_count("images")):
        feed(k)
    for k in range(6):
        outputs = pipe.run()
        batches.append([o.at(i) for o in outputs for i in range(len(o))])
        feed(k)

    pipe = scaled()
    pipe.build()
    for k in range(4):
        values, same = pipe.run(values=np.arange(6.0).reshape(3, 2) + k, factor=np.int32([1, 2, 3]))
        batches.append([np.array(values.as_tensor()), np.array(same.as_tensor())])
    return batches
