# %% [markdown]
# # Segmentation: images and masks in step
#
# A mask goes through the same geometry as its image, with the same random numbers, and keeps its classes: nearest neighbour, no blending.
# Images and masks to work with, in two folders with the same names:

# %%
from pathlib import Path

import cv2
import numpy as np
from skimage import data

for folder in ("images", "masks"):
    Path(folder).mkdir(exist_ok=True)
photograph = cv2.resize(data.astronaut(), (256, 256))[..., ::-1]
for k in range(6):
    shift = np.float32([[1, 0, 8 * k - 20], [0, 1, 4 * k]])
    mask = np.zeros((256, 256), np.uint8)
    cv2.ellipse(mask, (112, 56), (31, 42), 0, 0, 360, 1, -1)  # 1: face
    cv2.ellipse(mask, (112, 200), (100, 90), 0, 0, 360, 2, -1)  # 2: suit
    cv2.imwrite(f"images/{k}.jpg", cv2.warpAffine(photograph, shift, (256, 256)))
    cv2.imwrite(f"masks/{k}.png", cv2.warpAffine(mask, shift, (256, 256), flags=cv2.INTER_NEAREST))

# %% [markdown]
# ## Two readers, one order
#
# Two readers of the same list with the same seed and shuffle bring pairs. Every random number is drawn once and given to both.

# %%
import headrace
from headrace import fn, pipeline_def, types

NAMES = sorted(path.stem for path in Path("images").iterdir())


def read(folder, suffix, name):
    files = [f"{folder}/{stem}.{suffix}" for stem in NAMES]
    encoded, _ = fn.readers.file(files=files, random_shuffle=True, seed=5, name=name)
    return encoded


@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=5)
def training():
    image = fn.decoders.image(read("images", "jpg", "reader"))
    mask = fn.decoders.image(read("masks", "png", "masks"), output_type=types.GRAY)

    angle = fn.random.uniform(range=[-25, 25])
    coin = fn.random.coin_flip()
    x, y = fn.random.uniform(range=[0, 1]), fn.random.uniform(range=[0, 1])

    def geometry(data, interpolation):
        data = fn.rotate(data, angle=angle, keep_size=True, fill_value=0, interp_type=interpolation)
        data = fn.crop(data, crop=(192, 192), crop_pos_x=x, crop_pos_y=y)
        return fn.flip(data, horizontal=coin)

    image = geometry(image, types.INTERP_LINEAR)
    mask = geometry(mask, types.INTERP_NN)
    # Light and colour are the image's alone.
    image = fn.brightness_contrast(image, brightness=fn.random.uniform(range=[0.7, 1.3]))
    return image, mask


pipe = training()
images, masks = pipe.run()
sorted(set(masks.as_array().ravel().tolist()))

# %% [markdown]
# ## Look: the mask over the image

# %%
palette = np.uint8([[0, 0, 0], [255, 87, 34], [0, 150, 136]])
over = [
    np.uint8(0.6 * images.at(k) + 0.4 * palette[masks.at(k)[..., 0]]) for k in range(len(images))
]
headrace.show(over)

# %% [markdown]
# ## Windows that have something in them
#
# Where objects are small, draw the window about one: `random_object_bbox` finds the box of an object of the mask.


# %%
@pipeline_def(batch_size=4, num_threads=2, device_id=None, seed=6)
def about_objects():
    image = fn.decoders.image(read("images", "jpg", "reader"))
    mask = fn.decoders.image(read("masks", "png", "masks"), output_type=types.GRAY)
    start, end = fn.segmentation.random_object_bbox(
        mask, classes=[1], format="start_end", foreground_prob=1.0
    )
    window = fn.roi_random_crop(
        roi_start=start[:2], roi_end=end[:2], crop_shape=[96, 96], in_shape=[256, 256]
    )
    return tuple(
        fn.slice(data, start=window, shape=[96, 96], axes=[0, 1]) for data in (image, mask)
    )


images, masks = about_objects().run()
headrace.show(images)
[int((masks.at(k) == 1).sum()) for k in range(4)]
