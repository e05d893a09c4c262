# %% [markdown]
# # JAX and Flax on several devices
#
# A pipeline makes each batch and splits it among the devices. Here the CPU plays four of them, so JAX is told first; then data:

# %%
import os

os.environ["XLA_FLAGS"] = "--xla_force_host_platform_device_count=4"
os.environ.setdefault("JAX_PLATFORMS", "cpu")

from pathlib import Path

import cv2
from skimage import data

for name in ("astronaut", "chelsea", "coffee", "rocket"):
    for k in range(16):
        path = Path("photos") / name / f"{k}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), cv2.resize(getattr(data, name)()[k:, k:, ::-1], (160, 120)))

# %% [markdown]
# ## One device
#
# `data_iterator` makes a function of pipelines a function of iterators. Arrays are the memory of the pipeline.

# %%
import jax
import jax.numpy as jnp
import numpy as np
import optax
from flax import nnx
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from headrace import fn, types
from headrace.plugin.jax import LastBatchPolicy, data_iterator


def photographs(root):
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, name="reader")
    images = fn.resize(fn.decoders.image_random_crop(jpegs, random_area=[0.3, 1.0]), size=(48, 48))
    images = fn.crop_mirror_normalize(
        images,
        mirror=fn.random.coin_flip(),
        dtype=types.FLOAT,
        output_layout="HWC",
        mean=[127.5],
        std=[127.5],
    )
    return images, labels


single = data_iterator(photographs, output_map=["images", "labels"], reader_name="reader")
batch = next(iter(single("photos", batch_size=16, device_id=None, seed=1)))
batch["images"].shape, batch["images"].devices()

# %% [markdown]
# ## All devices
#
# A sharding says where parts of a batch go. With `split_batches=True` one pipeline makes whole batches: the samples and their augmentations are the same on one
# device and on four. (Without it each device has a pipeline for its shard, which takes `num_shards` and `shard_id`.)

# %%
mesh = Mesh(np.array(jax.devices()), ("batch",))
sharding = NamedSharding(mesh, PartitionSpec("batch"))
everywhere = NamedSharding(mesh, PartitionSpec())
sharded = data_iterator(
    photographs,
    output_map=["images", "labels"],
    reader_name="reader",
    sharding=sharding,
    split_batches=True,
    last_batch_policy=LastBatchPolicy.DROP,
)
loader = sharded("photos", batch_size=16, device_id=None, seed=1)
batch = next(iter(loader))
batch["images"].shape, [part.data.shape for part in batch["images"].addressable_shards]

# %% [markdown]
# ## Train with Flax


# %%
class Network(nnx.Module):
    def __init__(self, rngs):
        self.first = nnx.Conv(3, 16, (3, 3), strides=2, rngs=rngs)
        self.second = nnx.Conv(16, 32, (3, 3), strides=2, rngs=rngs)
        self.head = nnx.Linear(32, 4, rngs=rngs)

    def __call__(self, images):
        hidden = nnx.relu(self.second(nnx.relu(self.first(images))))
        return self.head(hidden.mean(axis=(1, 2)))


model = Network(nnx.Rngs(0))
optimizer = nnx.Optimizer(model, optax.adam(3e-3), wrt=nnx.Param)
nnx.update(model, jax.device_put(nnx.state(model), everywhere))
nnx.update(optimizer, jax.device_put(nnx.state(optimizer), everywhere))


@nnx.jit
def step(model, optimizer, batch):
    def loss_of(model):
        labels = batch["labels"].squeeze(-1)
        logits = model(batch["images"])
        return optax.softmax_cross_entropy_with_integer_labels(logits, labels).mean()

    loss, gradients = nnx.value_and_grad(loss_of)(model)
    optimizer.update(model, gradients)
    return loss


for epoch in range(3):
    losses = [step(model, optimizer, batch) for batch in loader]
    print(f"epoch {epoch}: {float(jnp.stack(losses).mean()):.3f}")

# %% [markdown]
# [JAX and Flax](../jax.md): many processes, peeking, checkpoints, functions of JAX within a pipeline.
