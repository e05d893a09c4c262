# %% [markdown]
# # A torchvision program moved over
#
# `ImageFolder`, transforms and a `DataLoader`, in two steps: first the transforms alone, then the whole of it as a pipeline. Photographs to read:

# %%
from pathlib import Path

import cv2
from skimage import data

for name in ("astronaut", "chelsea", "coffee", "rocket"):
    for k in range(4):
        path = Path("photos") / name / f"{k}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), getattr(data, name)()[k * 10 :, :, ::-1])

# %% [markdown]
# ## As it was

# %%
import torch
from torch.utils.data import DataLoader
from torchvision import datasets
from torchvision.transforms import v2

MEAN, STD = [0.485, 0.456, 0.406], [0.229, 0.224, 0.225]


def training(transforms):
    return transforms.Compose(
        [
            transforms.ToImage(),
            transforms.RandomResizedCrop(128, antialias=True),
            transforms.RandomHorizontalFlip(),
            transforms.ColorJitter(brightness=0.4, contrast=0.4, saturation=0.4),
            transforms.ToDtype(torch.float32, scale=True),
            transforms.Normalize(MEAN, STD),
        ]
    )


torch.manual_seed(1)
dataset = datasets.ImageFolder("photos", training(v2))
images, labels = next(iter(DataLoader(dataset, batch_size=4, shuffle=True)))
images.shape, labels

# %% [markdown]
# ## The transforms alone
#
# `headrace.experimental.torchvision` has torchvision's names: one import changes, and the loader stays.

# %%
from headrace.experimental.torchvision import v2 as headrace_v2

torch.manual_seed(1)
dataset = datasets.ImageFolder("photos", training(headrace_v2))
images, labels = next(iter(DataLoader(dataset, batch_size=4, shuffle=True)))
images.shape, labels

# %% [markdown]
# ## All of it, as a pipeline
#
# Reading and decoding move in, too: threads instead of worker processes, and the decoder decodes only what the crop needs. The iterator hands over tensors
# without a copy.

# %%
import headrace
from headrace import fn, pipeline_def, types
from headrace.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1)
def loaded(root):
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, name="reader")
    images = fn.decoders.image_random_crop(jpegs)
    images = fn.resize(images, size=(128, 128))
    images = fn.color_twist(
        images,
        brightness=fn.random.uniform(range=[0.6, 1.4]),
        contrast=fn.random.uniform(range=[0.6, 1.4]),
        saturation=fn.random.uniform(range=[0.6, 1.4]),
    )
    images = fn.crop_mirror_normalize(
        images,
        mirror=fn.random.coin_flip(),
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[255 * value for value in MEAN],
        std=[255 * value for value in STD],
    )
    return images, labels


pipe = loaded("photos")
headrace.show(pipe.run())

# %%
loader = DALIClassificationIterator(
    loaded("photos"), reader_name="reader", last_batch_policy=LastBatchPolicy.DROP
)
for (batch,) in loader:
    images, labels = batch["data"], batch["label"].squeeze(1).long()
    print(images.shape, labels.tolist())

# %% [markdown]
# [Coming from torchvision](../from-torchvision.md) has a table, transform by transform, and what is different.
