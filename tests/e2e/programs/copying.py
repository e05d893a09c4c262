"""Outputs copied into buffers of PyTorch by hand, and validation by a second pipeline."""

import nvidia.dali.fn as fn
import nvidia.dali.plugin.pytorch as dali_torch
import nvidia.dali.types as types
import torch
from nvidia.dali import pipeline_def
from nvidia.dali.plugin.base_iterator import LastBatchPolicy
from nvidia.dali.plugin.pytorch import feed_ndarray, to_torch_type


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def thumbnails(image_dir):
    jpegs, labels = fn.readers.file(file_root=image_dir, name="thumbnails", pad_last_batch=True)
    images = fn.decoders.image_crop(jpegs, crop=(30, 38), crop_pos_x=0.3, crop_pos_y=0.7)
    images = fn.transpose(fn.resize(images, size=[16, 20], antialias=False), perm=[2, 0, 1])
    return fn.cast(images, dtype=types.FLOAT) / 255, fn.squeeze(labels, axes=[0]) + 1


def main(image_dir):
    pipe = thumbnails(image_dir)
    pipe.build()
    results = []
    for _ in range(3):
        images, labels = pipe.run()
        tensor = images.as_tensor()
        buffer = torch.empty(tensor.shape(), dtype=to_torch_type[tensor.dtype])
        feed_ndarray(tensor, buffer)
        numbers = torch.zeros(4, dtype=torch.int32)
        feed_ndarray(labels.as_tensor(), numbers)
        results.append([buffer.numpy(), numbers.numpy()])
    pipes = [thumbnails(image_dir)]
    loader = dali_torch.DALIGenericIterator(
        pipes,
        ["image", "label"],
        reader_name="thumbnails",
        last_batch_policy=LastBatchPolicy.DROP,
        auto_reset="yes",
    )
    for _ in range(2):
        for batch in loader:
            assert len(batch) == 1
            results.append([batch[0]["image"].clone().numpy(), batch[0]["label"].numpy()])
    return results
