# %% [markdown]
# # Clips of videos
#
# Sequences of frames out of video files, cropped and coloured alike in all their frames. Videos need PyAV (`pip install 'headrace[video]'`). Two
# of them to read, a window that moves over a photograph:

# %%
from pathlib import Path

import av
import numpy as np
from skimage import data

Path("videos/left").mkdir(parents=True, exist_ok=True)
Path("videos/right").mkdir(parents=True, exist_ok=True)
photo = data.coffee()
for name, direction in (("left", -1), ("right", 1)):
    with av.open(f"videos/{name}/0.mp4", "w") as container:
        stream = container.add_stream("libx264", rate=24)
        stream.width, stream.height, stream.pix_fmt = 192, 144, "yuv420p"
        for k in range(40):
            x = 200 + direction * 4 * k
            frame = np.ascontiguousarray(photo[100:244, x : x + 192])
            container.mux(stream.encode(av.VideoFrame.from_ndarray(frame, format="rgb24")))
        container.mux(stream.encode(None))

# %% [markdown]
# ## Sequences
#
# Folders are classes. `stride` is the distance of frames, `step` that of sequences. A random number is drawn for a sequence, not for a frame: all frames
# have the same crop. `fn.per_frame` gives each frame a number of its own.

# %%
import headrace
from headrace import fn, pipeline_def, types


@pipeline_def(batch_size=2, num_threads=2, device_id=None, seed=1)
def clips():
    video, labels = fn.readers.video(
        file_root="videos",
        sequence_length=6,
        stride=2,
        step=8,
        random_shuffle=True,
        initial_fill=4,
        name="reader",
    )
    video = fn.crop(
        video,
        crop=(112, 112),
        crop_pos_x=fn.random.uniform(range=[0, 1]),
        crop_pos_y=fn.random.uniform(range=[0, 1]),
    )
    video = fn.flip(video, horizontal=fn.random.coin_flip())
    video = fn.brightness(video, brightness=fn.random.uniform(range=[0.7, 1.3]))
    return video, labels


pipe = clips()
video, labels = pipe.run()
headrace.show(video, labels=[str(v) for v in labels.as_array().ravel()])

# %% [markdown]
# ## For a network

# %%
from headrace.plugin.pytorch import DALIGenericIterator


@pipeline_def(batch_size=2, num_threads=2, device_id=None, seed=1)
def training():
    video, labels = fn.readers.video_resize(
        file_root="videos", sequence_length=8, stride=2, step=8, size=(96, 96), name="reader"
    )
    planes = fn.crop_mirror_normalize(
        video, dtype=types.FLOAT, output_layout="CFHW", mean=[128.0], std=[64.0]
    )
    return planes, labels


for (batch,) in DALIGenericIterator(training(), ["clip", "label"], reader_name="reader"):
    print(batch["clip"].shape, batch["label"].ravel().tolist())

# %% [markdown]
# ## Frames of your choice
#
# `fn.decoders.video` decodes bytes that come from anywhere, here frames that are named.


# %%
@pipeline_def(batch_size=1, num_threads=2, device_id=None)
def chosen():
    encoded, _ = fn.readers.file(file_root="videos", file_filters="*.mp4")
    return fn.decoders.video(encoded, frames=[0, 13, 39])


headrace.show(chosen().run())

# %% [markdown]
# [Videos](../video.md) says which codecs and containers there are, and what happens to bad files.
