# %% [markdown]
# # Medical volumes
#
# Volumes and their masks in three dimensions: read, cropped about what matters, rotated, scaled, normalised. Some arrays to read, balls in noise:

# %%
from pathlib import Path

import numpy as np

rng = np.random.default_rng(0)
for folder in ("scans", "masks"):
    Path(folder).mkdir(exist_ok=True)
z, y, x = np.mgrid[:48, :64, :64]
for k in range(4):
    center = rng.integers([16, 20, 20], [32, 44, 44])
    ball = (z - center[0]) ** 2 + (y - center[1]) ** 2 + (x - center[2]) ** 2 < 64
    scan = -1000 + 1100 * (np.hypot(y - 32, x - 32) < 28) + 400 * ball
    np.save(f"scans/{k}.npy", (scan + rng.normal(0, 60, scan.shape)).astype(np.int16))
    np.save(f"masks/{k}.npy", ball.astype(np.uint8))

# %% [markdown]
# ## The pipeline
#
# Layout `DHWC`: depth, height, width, channels. `random_object_bbox` finds the object, `roi_random_crop` a window that has it. Then scan and mask are
# turned about the same axis by the same angle. NIfTI and DICOM files come in by `fn.external_source` and the library that reads them.

# %%
import headrace
from headrace import fn, pipeline_def, types

WINDOW = [24, 32, 32]


def volume(folder, name):
    data = fn.readers.numpy(
        file_root=folder, file_filter="*.npy", random_shuffle=True, seed=2, name=name
    )
    return fn.reshape(data, src_dims=[0, 1, 2, -1], layout="DHWC")


@pipeline_def(batch_size=2, num_threads=2, device_id=None, seed=2)
def training():
    scan, mask = volume("scans", "reader"), volume("masks", "masks")
    start, end = fn.segmentation.random_object_bbox(
        mask, format="start_end", foreground_prob=0.9, ignore_class=True
    )
    window = fn.roi_random_crop(
        roi_start=start[:3], roi_end=end[:3], crop_shape=WINDOW, in_shape=[48, 64, 64]
    )
    angle = fn.random.uniform(range=[-20, 20])

    def geometry(data, interpolation, outside):
        data = fn.slice(data, start=window, shape=WINDOW, axes=[0, 1, 2])
        return fn.rotate(
            data,
            angle=angle,
            axis=[0, 0, 1],
            keep_size=True,
            fill_value=outside,
            interp_type=interpolation,
        )

    scan = geometry(fn.cast(scan, dtype=types.FLOAT), types.INTERP_LINEAR, -1000)
    mask = geometry(mask, types.INTERP_NN, 0)
    scan = headrace.math.clamp(scan, -1000, 400)  # Hounsfield units
    scan = fn.normalize(scan, mean=-300, stddev=500)
    scan = scan + fn.random.normal(scan, stddev=0.05)
    return scan, mask


pipe = training()
scan, mask = pipe.run()
scan.shape(), [int(mask.at(k).sum()) for k in range(2)]

# %% [markdown]
# ## Look: slices

# %%
headrace.show([scan.at(k)[::4] for k in range(2)], layout="DHWC")

# %%
headrace.show([mask.at(k)[::4] * 255 for k in range(2)], layout="DHWC")

# %% [markdown]
# ## For a network

# %%
from headrace.plugin.pytorch import DALIGenericIterator

for (batch,) in DALIGenericIterator(training(), ["scan", "mask"], reader_name="reader"):
    print(batch["scan"].permute(0, 4, 1, 2, 3).shape, batch["mask"].dtype)
