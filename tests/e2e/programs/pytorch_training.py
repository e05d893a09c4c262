"""The loop of a typical training script in PyTorch."""

import numpy as np
import torch
from nvidia.dali import fn, types
from nvidia.dali.pipeline import pipeline_def
from nvidia.dali.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy


@pipeline_def
def create_dali_pipeline(
    data_dir, crop, size, shard_id, num_shards, dali_cpu=False, is_training=True
):
    images, labels = fn.readers.file(
        file_root=data_dir,
        shard_id=shard_id,
        num_shards=num_shards,
        random_shuffle=is_training,
        pad_last_batch=True,
        name="Reader",
    )
    decoder_device, resize_device = ("cpu", "cpu") if dali_cpu else ("mixed", "gpu")
    if is_training:
        images = fn.decoders.image(
            images,
            device=decoder_device,
            output_type=types.RGB,
            hw_decoder_load=0.65,
            preallocate_width_hint=0,
            preallocate_height_hint=0,
        )
        images = fn.resize(
            images,
            device=resize_device,
            size=size,
            mode="not_smaller",
            interp_type=types.INTERP_TRIANGULAR,
        )
        mirror = fn.random.coin_flip(probability=0.0)
    else:
        images = fn.decoders.image(images, device=decoder_device, output_type=types.RGB)
        images = fn.resize(
            images,
            device=resize_device,
            size=size,
            mode="not_smaller",
            interp_type=types.INTERP_TRIANGULAR,
        )
        mirror = False
    images = fn.crop_mirror_normalize(
        images,
        dtype=types.FLOAT,
        output_layout="CHW",
        crop=(crop, crop),
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
        mirror=mirror,
    )
    labels = labels.gpu() if not dali_cpu else labels
    return images, labels


def main(image_dir):
    results = []
    for is_training in (True, False):
        pipe = create_dali_pipeline(
            batch_size=8,
            num_threads=2,
            device_id=None,
            seed=12,
            data_dir=image_dir,
            crop=24,
            size=32,
            dali_cpu=True,
            shard_id=0,
            num_shards=2,
            is_training=is_training,
        )
        pipe.build()
        loader = DALIClassificationIterator(
            pipe, reader_name="Reader", last_batch_policy=LastBatchPolicy.PARTIAL, auto_reset=True
        )
        for _epoch in range(2):
            for i, data in enumerate(loader):
                inputs = data[0]["data"]
                target = data[0]["label"].squeeze(-1).long()
                assert target.dtype == torch.int64
                results.append((np.array([i, len(loader)]), inputs.numpy().copy(), target.numpy()))
            loader.reset()
    return results
