"""The pipeline of EfficientNet: from files to normalised tensors of PyTorch, with AutoAugment."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from headrace import fn, pipeline_def, types
from headrace.auto_aug import auto_augment, rand_augment, trivial_augment
from headrace.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy
from tests.support.images import encoded

FILES, SIZE, BATCH = 11, 32, 4
AUGMENTATIONS = {
    "autoaugment": lambda x: auto_augment.auto_augment_image_net(x, shape=(SIZE, SIZE)),
    "randaugment": lambda x: rand_augment.rand_augment(x, n=2, m=9, shape=(SIZE, SIZE)),
    "trivialaugment": lambda x: trivial_augment.trivial_augment_wide(x, shape=(SIZE, SIZE)),
    "disabled": lambda x: x,
}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("photos")
    for k in range(FILES):
        of_class = root / f"class{k % 3}"
        of_class.mkdir(exist_ok=True)
        (of_class / f"{k}.jpg").write_bytes(encoded(40 + k, 60 - k, seed=k).tobytes())
    return str(root)


@pipeline_def(enable_conditionals=True)
def training(folder, augmentation, source=None):
    if source is None:
        jpegs, labels = fn.readers.file(
            file_root=folder, random_shuffle=True, pad_last_batch=True, name="reader"
        )
    else:
        jpegs, labels = fn.external_source(source=source, num_outputs=2, batch=True)
    images = fn.decoders.image_random_crop(
        jpegs, output_type=types.RGB, random_aspect_ratio=[0.75, 4 / 3], random_area=[0.08, 1.0]
    )
    images = fn.resize(images, size=[SIZE, SIZE], interp_type=types.INTERP_LINEAR, antialias=False)
    images = fn.flip(images, horizontal=fn.random.coin_flip(probability=0.5))
    output = AUGMENTATIONS[augmentation](images)
    output = fn.crop_mirror_normalize(
        output,
        dtype=types.FLOAT,
        output_layout="CHW",
        crop=(SIZE, SIZE),
        mean=[0.485 * 255, 0.456 * 255, 0.406 * 255],
        std=[0.229 * 255, 0.224 * 255, 0.225 * 255],
    )
    return output, labels


def pipeline(folder, augmentation, num_threads, **arguments):
    return training(
        folder,
        augmentation,
        **arguments,
        batch_size=BATCH,
        num_threads=num_threads,
        device_id=None,
        seed=12,
    )


@pytest.mark.parametrize("augmentation", AUGMENTATIONS)
def test_epochs_of_tensors(folder, augmentation):
    iterators = [
        DALIClassificationIterator(
            pipeline(folder, augmentation, num_threads),
            reader_name="reader",
            last_batch_policy=LastBatchPolicy.PARTIAL,
            auto_reset=True,
        )
        for num_threads in (1, 2)
    ]
    for _ in range(2):
        seen = []
        for (one,), (other,) in zip(*iterators, strict=True):
            images, labels = one["data"], one["label"]
            assert images.dtype == torch.float32
            assert images.shape[1:] == (3, SIZE, SIZE)
            assert torch.equal(images, other["data"])
            assert torch.equal(labels, other["label"])
            assert bool(torch.isfinite(images).all())
            seen += labels.ravel().tolist()
        assert sorted(seen) == sorted(k % 3 for k in range(FILES))


def test_samples_that_are_not_augmented_stay_as_they_are(folder):
    # `trivial_augment_wide` leaves one of fifteen as it is: all random operators before it draw
    # what they draw without it.
    def source(info):
        names = [encoded(50, 60, seed=k) for k in range(BATCH)]
        return names, np.arange(BATCH, dtype=np.int32)[:, None]

    drawn = []
    for augmentation in ("trivialaugment", "disabled"):
        pipe = pipeline(None, augmentation, 2, source=source)
        drawn.append(np.concatenate([pipe.run()[0].as_array() for _ in range(30)]))
    same = (np.abs(drawn[0] - drawn[1]) < 1e-6).all(axis=(1, 2, 3))
    assert 0 < same.sum() < len(same) / 3
