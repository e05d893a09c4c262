"""Video-like data: sequences whose axes are moved, with arguments for each frame."""

import numpy as np
from nvidia.dali import fn, pipeline_def, types


@pipeline_def(batch_size=3, num_threads=2, device_id=None)
def clips(source):
    video = fn.external_source(source=source, layout="FHWC", batch=True, cycle="quiet")
    flat = fn.reshape(video, shape=[-1, 20, 3], layout="HWC")
    planes = fn.transpose(video, perm=[3, 0, 1, 2])
    cropped = fn.crop(video, crop=(8, 9), crop_pos_x=0.25, crop_pos_y=1.0)
    mirrored = fn.flip(video, horizontal=1)
    small = fn.resize(video, resize_x=10, resize_y=6, min_filter=types.INTERP_LINEAR)
    normal = fn.crop_mirror_normalize(
        video, output_layout="FCHW", dtype=types.FLOAT, mean=[100.0], std=[50.0], mirror=1
    )
    turned = fn.rotate(video, angle=fn.per_frame(np.float32([0, 90, 180, 10])))
    blurred = fn.gaussian_blur(video, sigma=1.5)
    first = video[0]
    return (
        flat,
        planes,
        cropped,
        mirrored,
        small,
        normal,
        turned,
        blurred,
        first,
        fn.squeeze(fn.expand_dims(video, axes=[0], new_axis_names="D"), axis_names="D"),
    )


def main(image_dir):
    rng = np.random.default_rng(3)
    data = [
        [rng.integers(0, 255, (4, 16, 20, 3)).astype(np.uint8) for _ in range(3)] for _ in range(2)
    ]
    pipe = clips(data)
    pipe.build()
    batches = []
    for _ in range(3):
        outputs = pipe.run()
        batches.append([np.array(o.layout()) for o in outputs])
        batches.append([o.at(i) for o in outputs for i in range(3)])
    return batches
