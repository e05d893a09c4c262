# %% [markdown]
# # Training with PyTorch, stopped and resumed
#
# A small network, an epoch that is stopped in the middle, and a run that goes on with exactly the batches that were left. Data first:

# %%
from pathlib import Path

import cv2
from skimage import data

for name in ("astronaut", "chelsea", "coffee", "rocket"):
    for k in range(16):
        path = Path("photos") / name / f"{k}.jpg"
        path.parent.mkdir(parents=True, exist_ok=True)
        cv2.imwrite(str(path), cv2.resize(getattr(data, name)()[k:, k:, ::-1], (160, 120)))

# %% [markdown]
# ## The loader
#
# `enable_checkpointing=True` lets the iterator tell its state. The last batch is filled up here, so that all have the same size.

# %%
import torch
from torch import nn

from headrace import fn, pipeline_def, types
from headrace.plugin.pytorch import DALIClassificationIterator


@pipeline_def(batch_size=8, num_threads=2, device_id=None, seed=7, enable_checkpointing=True)
def training(root):
    jpegs, labels = fn.readers.file(file_root=root, random_shuffle=True, name="reader")
    images = fn.decoders.image_random_crop(jpegs, random_area=[0.3, 1.0])
    images = fn.crop_mirror_normalize(
        fn.resize(images, size=(64, 64)),
        mirror=fn.random.coin_flip(),
        dtype=types.FLOAT,
        output_layout="CHW",
        mean=[123.675, 116.28, 103.53],
        std=[58.395, 57.12, 57.375],
    )
    return images, labels


def make_loader():
    return DALIClassificationIterator(training("photos"), reader_name="reader")


def make_model():
    torch.manual_seed(0)
    layers = []
    for a, b in ((3, 16), (16, 32), (32, 64)):
        layers += [nn.Conv2d(a, b, 3, stride=2, padding=1), nn.ReLU()]
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(64, 4))
    return model, torch.optim.Adam(model.parameters(), lr=3e-3)


def step(model, optimizer, batch):
    loss = nn.functional.cross_entropy(model(batch["data"]), batch["label"].squeeze(1).long())
    optimizer.zero_grad()
    loss.backward()
    optimizer.step()
    return loss.item()


# %% [markdown]
# ## Train, and keep the state in the middle of the second epoch

# %%
model, optimizer = make_model()
loader = make_loader()
losses = [step(model, optimizer, batch) for (batch,) in loader]
print(f"epoch 0: {sum(losses) / len(losses):.3f}")

left = []
for k, (batch,) in enumerate(loader):
    if k < 3:
        step(model, optimizer, batch)
    else:
        left.append(batch["label"].ravel().tolist())
    if k == 2:
        state = {
            "model": model.state_dict(),
            "optimizer": optimizer.state_dict(),
            "loader": loader.state_dict(),
        }
        torch.save(state, "state.pt")
len(left)

# %% [markdown]
# ## Go on, in another process
#
# The batches that come are those that were left, with the same random crops.

# %%
state = torch.load("state.pt", weights_only=True)
model, optimizer = make_model()
model.load_state_dict(state["model"])
optimizer.load_state_dict(state["optimizer"])
loader = make_loader()
loader.load_state_dict(state["loader"])

for (batch,), before in zip(loader, left, strict=True):
    print(batch["label"].ravel().tolist(), f"loss {step(model, optimizer, batch):.3f}")
    assert batch["label"].ravel().tolist() == before

# %% [markdown]
# [PyTorch](../pytorch.md) has the rest: several GPUs, Lightning, Accelerate; [checkpoints](../checkpointing.md) say what is kept.
