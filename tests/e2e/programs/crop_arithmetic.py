"""Windows computed from the shapes of images, with arithmetic, indices and mathematics."""

import nvidia.dali.fn as fn
import nvidia.dali.math as math
import nvidia.dali.types as types
from nvidia.dali import pipeline_def


@pipeline_def
def windows(files, labels):
    encoded, label = fn.readers.file(files=files, labels=labels, name="files")
    shape = fn.peek_image_shape(encoded, dtype=types.FLOAT)
    hw = shape[:2]
    height, width = shape[0], shape[1]
    side = math.floor(math.min(height, width) * 0.75)
    start = (hw - side) / 2
    images = fn.decoders.image(encoded)
    centre = fn.slice(
        images,
        start=fn.cast(start, dtype=types.INT32),
        end=fn.cast(start + side, dtype=types.INT32),
        axes=[0, 1],
    )
    half = fn.decoders.image_slice(
        encoded, rel_start=[0.25, 0.0], rel_shape=[0.5, 0.5], axes=[0, 1]
    )
    left = images[:, : fn.cast(width / 3, dtype=types.INT32), 0:2]
    wide = fn.slice(
        images,
        rel_start=-0.1,
        rel_end=1.2,
        axis_names="W",
        out_of_bounds_policy="pad",
        fill_values=[1, 2, 3],
    )
    is_large = (height > 62) & (width >= 78) | (label == 0)
    area = math.sqrt(height * width) // 1 + types.Constant(2, dtype=types.INT32)
    return centre, half, left, wide, is_large, area, -label % 5, label.shape()


def main(image_dir):
    import glob
    import os

    files = sorted(glob.glob(os.path.join(image_dir, "*", "*.jpg")))
    pipe = windows(
        files, list(range(100, 100 + len(files))), batch_size=5, num_threads=2, device_id=None
    )
    pipe.build()
    return [[o.at(i) for o in pipe.run() for i in range(5)] for _ in range(4)]
