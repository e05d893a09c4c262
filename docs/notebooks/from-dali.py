# %% [markdown]
# # A DALI program moved over
#
# Replace `nvidia.dali` by `headrace`. Files to read first:

# %%
from pathlib import Path

import cv2
from skimage import data

for name in ("astronaut", "chelsea", "coffee"):
    path = Path("photos") / name / "0.jpg"
    path.parent.mkdir(parents=True, exist_ok=True)
    cv2.imwrite(str(path), getattr(data, name)()[..., ::-1])

# %% [markdown]
# The program as it was, and the one change that it needs:

# %%
program = """
import nvidia.dali.fn as fn
import nvidia.dali.types as types
from nvidia.dali import pipeline_def

@pipeline_def(batch_size=3, num_threads=2, device_id=None, seed=12)
def pipeline():
    jpegs, labels = fn.readers.file(file_root="photos", name="Reader")
    images = fn.decoders.image(jpegs, output_type=types.RGB)
    images = fn.random_resized_crop(images, size=[96, 96])
    flip = fn.random.coin_flip(probability=0.5)
    return fn.crop_mirror_normalize(images, mirror=flip, dtype=types.FLOAT, mean=[128.0]), labels
"""
moved = program.replace("nvidia.dali", "headrace")

names = {}
exec(moved, names)
pipe = names["pipeline"]()
pipe.build()
images, labels = pipe.run()
images.as_array().shape, labels.as_array().ravel()

# %% [markdown]
# ## The same numbers
#
# Values of operators are DALI's. Random numbers have its distributions, and with `random_numbers="dali"` they are its numbers, too, for the same
# seed: the crops below are those that DALI draws. That is for the days of the move; the default does not depend on
# the order in which operators were called.

# %%
import headrace

pipe = names["pipeline"](random_numbers="dali")
headrace.show(pipe.run())

# %% [markdown]
# ## What is not there
#
# What this version lacks raises an error that says so, where the program uses it; nothing is ignored. [What works
# where](../support-matrix.md) lists all operators, [differences](../differences-from-dali.md) what a program may notice.

# %%
from headrace import fn

try:
    fn.resize(None, size=[10, 10], nonsense=1)
except Exception as error:
    print(type(error).__name__, error)
