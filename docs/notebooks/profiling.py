# %% [markdown]
# # Profiling until it is fast
#
# A pipeline with two mistakes, a profile that names them, and the pipeline without. Photographs of some size first:

# %%
from pathlib import Path

import cv2
import numpy as np
from skimage import data

Path("photos/a").mkdir(parents=True, exist_ok=True)
for k in range(32):
    photo = (data.astronaut(), data.chelsea(), data.coffee(), data.rocket())[k % 4]
    cv2.imwrite(f"photos/a/{k:02}.jpg", cv2.resize(photo, (1280, 960))[..., ::-1])

# %% [markdown]
# ## What is slow?
#
# A source in Python reads the files one by one, and a Python function scales each image.

# %%
import time

import headrace
from headrace import fn, pipeline_def, types

FILES = sorted(Path("photos").rglob("*.jpg"))


def read(sample):
    return np.fromfile(FILES[sample.idx_in_epoch % len(FILES)], np.uint8)


def scaled(image):
    image = cv2.resize(image, (224, 224), interpolation=cv2.INTER_AREA)
    return ((image - [124.0, 116.0, 104.0]) / [58.0, 57.0, 57.0]).astype(np.float32)


@pipeline_def(batch_size=8, num_threads=2, device_id=None)
def slow():
    images = fn.decoders.image(fn.external_source(read, batch=False))
    return fn.python_function(images, function=scaled)


def images_a_second(pipe, batches=12):
    pipe.build()
    pipe.run()
    start = time.perf_counter()
    for _ in range(batches):
        pipe.run()
    return round(batches * 8 / (time.perf_counter() - start))


with headrace.profile("slow.html") as profile:
    before = images_a_second(slow())

for advice in profile.advice():
    print(advice.title)

# %% [markdown]
# `slow.html` opens in any browser: who waits for whom, time by operator, what every thread did.
#
# ## Without them
#
# Operators in place of the function: the decoder then decodes no more than the resize needs, and the loops hold no interpreter. A reader in place of the source
# reads ahead.


# %%
@pipeline_def(batch_size=8, num_threads=2, device_id=None)
def fast():
    jpegs, _ = fn.readers.file(file_root="photos")
    images = fn.resize(fn.decoders.image(jpegs), size=(224, 224))
    return fn.crop_mirror_normalize(
        images, dtype=types.FLOAT, output_layout="HWC", mean=[124, 116, 104], std=[58, 57, 57]
    )


with headrace.profile("fast.html") as profile:
    after = images_a_second(fast())

for advice in profile.advice():
    print(advice.title)
print(f"{before} images a second before, {after} after")

# %% [markdown]
# [Profiles](../profiling.md) explain each advice; `headrace bench` and `headrace profile train.py:pipeline` do this from [the command line](../command-line.md).
