# %% [markdown]
# # Dynamic mode: audio augmentation in plain Python
#
# Operators called on data, in ordinary loops with ordinary breakpoints: develop, reproduce, go faster, resume. Clips to read:

# %%
import wave
from pathlib import Path

import numpy as np

for k in range(8):
    t = np.arange(20000) / 16000
    tone = np.sin(2 * np.pi * (200 + 60 * k + 300 * t) * t) * np.hanning(len(t))
    path = Path("clips") / "ab"[k % 2] / f"{k}.wav"
    path.parent.mkdir(parents=True, exist_ok=True)
    with wave.open(str(path), "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes((tone * 12000).astype("<i2").tobytes())

# %% [markdown]
# ## Develop
#
# An augmentation is a function. Each line can be looked at.

# %%
import headrace
import headrace.experimental.dynamic as ndd


def augment(files, rng):
    size = files.batch_size
    audio, _ = ndd.decoders.audio(files, downmix=True)
    start = ndd.random.uniform(range=[0.0, 0.2], batch_size=size, rng=rng)
    audio = ndd.slice(audio, rel_start=start, shape=[16000], axes=[0])
    audio = audio * ndd.random.uniform(range=[0.5, 1.5], batch_size=size, rng=rng)
    power = ndd.spectrogram(audio, nfft=512, window_length=400, window_step=160)
    mel = ndd.to_decibels(ndd.mel_filter_bank(power, sample_rate=16000, nfilter=80), cutoff_db=-80)
    return ndd.normalize(mel, axes=[0, 1])


def reader():
    return ndd.readers.File(file_root="clips", random_shuffle=True, seed=3)


files, labels = next(iter(reader().next_epoch(batch_size=4)))
features = augment(files, ndd.random.RNG(seed=1))
headrace.show(features, layout="ft")
print(features.dtype, [tuple(sample.shape) for sample in features.tensors])

# %% [markdown]
# A call returns at once, and the work is done in the background: a mistake in the data comes up where a result is looked at, and names
# the line of the call. In `sync_cpu` it comes up in the call itself.

# %%
with ndd.EvalMode.sync_cpu:
    try:
        ndd.mel_filter_bank(ndd.tensor(np.zeros((257, 9), np.float32)), nfilter=0)
    except Exception as error:
        print(type(error).__name__, str(error).splitlines()[0])

# %% [markdown]
# ## Reproduce
#
# The same seeds give the same bytes.


# %%
def epoch(seed):
    rng = ndd.random.RNG(seed=seed)
    return [
        np.asarray(augment(files, rng).cpu().tensors[0])
        for files, _ in reader().next_epoch(batch_size=4)
    ]


once, again, other = epoch(1), epoch(1), epoch(2)
np.array_equal(once, again), np.array_equal(once, other)

# %% [markdown]
# ## Go faster, in the same loop
#
# `capture=True` traces two steps and does what they have in common ahead, while the program trains. Values stay the same.

# %%
files = reader()
rng = ndd.random.RNG(seed=1)
captured = []
for _ in range(3):
    for encoded, labels in files.next_epoch(batch_size=4, capture=True):
        captured.append(np.asarray(augment(encoded, rng).cpu().tensors[0]))
np.array_equal(once, captured[: len(once)]), len(captured)

# %% [markdown]
# ## Resume
#
# A checkpoint keeps readers and generators together. Register them before they read.

# %%
files, rng = reader(), ndd.random.RNG(seed=1)
saved = ndd.checkpoint.Checkpoint()
saved.register(files, "files")
saved.register(rng, "rng")
for encoded, labels in files.next_epoch(batch_size=2):
    augment(encoded, rng)
    break
saved.collect()
saved.save("state-{seq}.json")
left = [np.asarray(augment(e, rng).cpu().tensors[0]) for e, _ in files.next_epoch(batch_size=2)]

files, rng = reader(), ndd.random.RNG()
loaded = ndd.checkpoint.Checkpoint()
loaded.load("state-{seq}.json")
loaded.register(files, "files")
loaded.register(rng, "rng")
came = [np.asarray(augment(e, rng).cpu().tensors[0]) for e, _ in files.next_epoch(batch_size=2)]
len(left), np.array_equal(left, came)

# %% [markdown]
# ## Into a framework
#
# `features.torch()` is a tensor of PyTorch without a copy; `pad=True` pads ragged samples. [Dynamic mode](../dynamic.md) has the rest: threads, GPUs, data of your
# own.

# %%
features.torch().shape
