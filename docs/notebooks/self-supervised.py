# %% [markdown]
# # Self-supervised learning: many crops of one image
#
# DINO and SwAV see two large and several small crops of each image, each with colours and blur of its own. One decoded image feeds all of them. Data:

# %%
from pathlib import Path

import cv2
from skimage import data

for name in ("astronaut", "chelsea", "coffee", "rocket"):
    path = Path("photos") / name / "0.jpg"
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), getattr(data, name)()[..., ::-1])

# %% [markdown]
# ## Views
#
# A view is a function of the definition; calling it again draws anew. `if` on a random number works on single samples
# with `enable_conditionals=True`: only the samples of a branch do its work.

# %%
import headrace
from headrace import fn, pipeline_def, types


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=8, enable_conditionals=True)
def views(large=2, small=4):
    jpegs, _ = fn.readers.file(file_root="photos", random_shuffle=True, name="reader")
    images = fn.decoders.image(jpegs)

    def view(size, area):
        crop = fn.random_resized_crop(images, size=(size, size), random_area=area)
        crop = fn.flip(crop, horizontal=fn.random.coin_flip())
        if fn.random.coin_flip(probability=0.8, dtype=types.BOOL):
            crop = fn.color_twist(
                crop,
                brightness=fn.random.uniform(range=[0.6, 1.4]),
                contrast=fn.random.uniform(range=[0.6, 1.4]),
                saturation=fn.random.uniform(range=[0.8, 1.2]),
                hue=fn.random.uniform(range=[-36, 36]),
            )
        if fn.random.coin_flip(probability=0.2, dtype=types.BOOL):
            grey = fn.color_space_conversion(crop, image_type=types.RGB, output_type=types.GRAY)
            crop = fn.cat(grey, grey, grey, axis=2)
        if fn.random.coin_flip(probability=0.5, dtype=types.BOOL):
            crop = fn.gaussian_blur(crop, sigma=fn.random.uniform(range=[0.1, 2.0]))
        return crop

    crops = [view(160, [0.4, 1.0]) for _ in range(large)]
    crops += [view(64, [0.05, 0.4]) for _ in range(small)]
    return tuple(crops)


pipe = views()
headrace.show(pipe.run()[:4], columns=4)

# %% [markdown]
# ## Batches for training

# %%
from headrace.plugin.pytorch import DALIGenericIterator

names = [f"view{k}" for k in range(6)]
for (batch,) in DALIGenericIterator(views(), names, reader_name="reader"):
    print([tuple(batch[name].shape) for name in names])

# %% [markdown]
# RandAugment and its like are one call: [automatic augmentation](../auto-aug.md). [Conditionals](../conditionals.md) say more on `if`.
