# %% [markdown]
# # A first pipeline
#
# Files in, batches out: read, decode, augment, batch. Some photographs to work with, a folder for each class:

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
# ## Define
#
# The function runs once, and says what is done to each sample. What depends on the sample is an operator, too, as the coin here.

# %%
import headrace
from headrace import fn, pipeline_def, types


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1)
def training(root):
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, name="reader")
    images = fn.decoders.image_random_crop(jpegs, random_area=[0.3, 1.0])
    images = fn.resize(images, size=(128, 128))
    images = fn.crop_mirror_normalize(
        images,
        mirror=fn.random.coin_flip(),
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
    )
    return images, labels


pipe = training("photos")

# %% [markdown]
# ## Run, and look
#
# `run` gives a batch of each output. `show` draws them; `print` says what runs.

# %%
images, labels = pipe.run()
headrace.show((images, labels))

# %%
print(pipe)

# %% [markdown]
# `as_array` and `at` give NumPy's arrays; PyTorch, JAX and TensorFlow take batches without a copy by the iterators of their plugins.

# %%
images.as_tensor().shape(), images.at(0).dtype, labels.as_array().ravel()

# %% [markdown]
# ## An epoch
#
# With `device_id=0` in place of `None`, and `device="mixed"` for the decoder, the same pipeline runs on a GPU.

# %%
from headrace.plugin.pytorch import DALIClassificationIterator, LastBatchPolicy

loader = DALIClassificationIterator(
    training("photos"), reader_name="reader", last_batch_policy=LastBatchPolicy.PARTIAL
)
for (batch,) in loader:
    print(batch["data"].shape, batch["label"].ravel().tolist())

# %% [markdown]
# Next: [training with PyTorch](pytorch-training.py), [what a profile says](profiling.py), [all operators](../reference/index.md).
