"""Operators as objects whose arguments are outputs of other operators, given at the call."""

import numpy as np
from nvidia.dali import ops, types
from nvidia.dali.pipeline import Pipeline


class AugmentedPipeline(Pipeline):
    def __init__(self, batch_size, num_threads, image_dir):
        super().__init__(batch_size, num_threads, device_id=None, seed=12)
        self.input = ops.readers.File(file_root=image_dir, shard_id=0, num_shards=2, name="Reader")
        self.parameters = ops.ExternalSource(source=self.draw, num_outputs=4)
        self.decode = ops.decoders.Image(output_type=types.RGB)
        self.rotate = ops.Rotate(interp_type=types.INTERP_LINEAR, fill_value=0, keep_size=True)
        self.res = ops.Resize(resize_x=64, resize_y=48)
        self.twist = ops.BrightnessContrast()
        self.cmn = ops.CropMirrorNormalize(
            dtype=types.FLOAT16, output_layout="CHW", crop=(32, 32), mean=[128.0], std=[64.0]
        )
        self.count = 0

    def draw(self):
        rng = np.random.default_rng(self.count)
        self.count += 1
        n = self.max_batch_size
        return (
            rng.integers(0, 2, n).astype(np.int32),
            rng.uniform(0, 1, (n, 1)).astype(np.float32).reshape(n),
            rng.uniform(-20, 20, n).astype(np.float32),
            rng.uniform(0.5, 1.5, n).astype(np.float32),
        )

    def define_graph(self):
        mirror, crop_x, angle, contrast = self.parameters()
        jpegs, labels = self.input()
        images = self.res(self.decode(jpegs))
        images = self.twist(images, contrast=contrast, brightness=1.1)
        images = self.rotate(images, angle=angle)
        images = self.cmn(images, mirror=mirror, crop_pos_x=crop_x, crop_pos_y=0.25)
        return images, labels


def main(image_dir):
    pipe = AugmentedPipeline(batch_size=6, num_threads=3, image_dir=image_dir)
    pipe.build()
    assert pipe.epoch_size("Reader") == pipe.reader_meta("Reader")["epoch_size_padded"]
    return [[np.float32(o.as_array()) for o in pipe.run()] for _ in range(4)]
