"""The oldest way: a sub-class of `Pipeline` with operators as objects."""

import nvidia.dali.ops as ops
import nvidia.dali.types as types
from nvidia.dali.pipeline import Pipeline


class SimplePipeline(Pipeline):
    def __init__(self, batch_size, num_threads, device_id, image_dir):
        super(SimplePipeline, self).__init__(batch_size, num_threads, device_id, seed=12)
        self.input = ops.readers.File(file_root=image_dir)
        self.decode = ops.decoders.Image(device="cpu", output_type=types.RGB)
        self.resize = ops.Resize(device="cpu", resize_shorter=48.0, interp_type=types.INTERP_LINEAR)
        self.cmn = ops.CropMirrorNormalize(
            device="cpu",
            dtype=types.FLOAT,
            output_layout=types.NCHW,
            crop=(40, 40),
            mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
            std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
        )

    def define_graph(self):
        jpegs, labels = self.input()
        images = self.decode(jpegs)
        images = self.resize(images)
        output = self.cmn(images)
        return (output, labels)


def main(image_dir):
    pipe = SimplePipeline(8, 2, None, image_dir)
    pipe.build()
    batches = []
    for _ in range(5):
        images, labels = pipe.run()
        assert images.layout() == "CHW"
        assert images.is_dense_tensor()
        batches.append((images.as_array(), labels.as_array()))
    print(pipe.epoch_size())
    return batches
