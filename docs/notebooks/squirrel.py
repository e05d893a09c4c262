# %% [markdown]
# # Squirrel's shards
#
# Data that [Squirrel](https://github.com/merantix-momentum/squirrel-core) keeps, decoded and augmented by a pipeline. Shards first, written by Squirrel:

# %%
import cv2
import numpy as np
from skimage import data
from squirrel.driver import MessagepackDriver

PHOTOS = [data.astronaut(), data.chelsea(), data.coffee(), data.rocket()]
samples = [
    {
        "image": cv2.imencode(".jpg", cv2.resize(photo, (200, 150))[..., ::-1])[1].ravel(),
        "label": np.int64(k),
    }
    for k, photo in enumerate(PHOTOS)
]
driver = MessagepackDriver("shards")
for shard in range(3):
    driver.store.set(samples, key=f"shard{shard}")

# %% [markdown]
# ## As a reader
#
# `fn.readers.squirrel` has the arguments and epochs of all readers. Shards are read by threads of the pipeline; Squirrel itself is not needed for it.

# %%
import headrace
import headrace.plugin.squirrel  # adds fn.readers.squirrel
from headrace import fn, pipeline_def


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=1)
def training():
    encoded, labels = fn.readers.squirrel(
        path="shards", fields=["image", "label"], random_shuffle=True, initial_fill=8, name="reader"
    )
    images = fn.random_resized_crop(fn.decoders.image(encoded), size=(120, 120))
    return fn.flip(images, horizontal=fn.random.coin_flip()), labels


pipe = training()
images, labels = pipe.run()
headrace.show((images, labels))

# %% [markdown]
# ## As a source
#
# What is composed in Squirrel (`map`, `filter`, joins) comes in as an external source.

# %%
from headrace.plugin import squirrel


@pipeline_def(batch_size=4, num_threads=2, device_id=None)
def composed():
    cats = driver.get_iter().filter(lambda sample: int(sample["label"]) == 1)
    encoded, labels = fn.external_source(
        source=squirrel.source(cats, ["image", "label"]), num_outputs=2
    )
    return fn.resize(fn.decoders.image(encoded), size=(64, 64)), labels


images, labels = composed().run()
labels.as_array().ravel()

# %% [markdown]
# [Squirrel data sets](../squirrel.md) has every argument: parts for ranks, orders, caches, schemas.
