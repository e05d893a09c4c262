# requires: tensorflow
# %% [markdown]
# # Keras
#
# A pipeline as a `tf.data` dataset, in `model.fit`. Photographs first:

# %%
import os

os.environ.setdefault("TF_CPP_MIN_LOG_LEVEL", "2")

from pathlib import Path

import cv2
import tensorflow as tf
from skimage import data

for name in ("astronaut", "chelsea", "coffee", "rocket"):
    for k in range(12):
        path = Path("photos") / name / f"{k}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), cv2.resize(getattr(data, name)()[k:, k:, ::-1], (160, 120)))

# %% [markdown]
# ## The dataset
#
# With `reader_name` it ends with the epoch, and the next iterator is the next epoch, shuffled anew. Shapes tell Keras what comes.

# %%
from headrace import fn, pipeline_def, types
from headrace.plugin.tf import DALIDataset


@pipeline_def(seed=1)
def photographs():
    jpegs, labels = fn.readers.file(file_root="photos", random_shuffle=True, name="reader")
    images = fn.resize(fn.decoders.image(jpegs), size=(48, 48))
    images = fn.crop_mirror_normalize(
        images,
        mirror=fn.random.coin_flip(),
        dtype=types.FLOAT,
        output_layout="HWC",
        mean=[127.5],
        std=[127.5],
    )
    return images, labels


dataset = DALIDataset(
    photographs(),
    output_dtypes=(tf.float32, tf.int32),
    output_shapes=((None, 48, 48, 3), (None,)),
    batch_size=8,
    num_threads=2,
    device_id=None,
    reader_name="reader",
)
images, labels = next(iter(dataset))
images.shape, labels

# %% [markdown]
# ## Train

# %%
tf.keras.utils.set_random_seed(1)
layers = tf.keras.layers
model = tf.keras.Sequential(
    [
        tf.keras.Input([48, 48, 3]),
        layers.Conv2D(16, 3, 2, activation="relu"),
        layers.Conv2D(32, 3, 2, activation="relu"),
        layers.GlobalAveragePooling2D(),
        layers.Dense(4),
    ]
)
loss = tf.keras.losses.SparseCategoricalCrossentropy(from_logits=True)
model.compile(tf.keras.optimizers.Adam(3e-3), loss, metrics=["accuracy"])
history = model.fit(dataset, epochs=3, shuffle=False, verbose=0)
history.history["loss"]

# %% [markdown]
# [TensorFlow](../tensorflow.md): ragged batches, `tf.distribute`, datasets as inputs of pipelines.
