# %% [markdown]
# # Speech with SpecAugment
#
# Recordings to log-mel spectrograms, with noise, and with bands of time and frequency erased. Some clips to read, tones that slide:

# %%
import wave
from pathlib import Path

import numpy as np

Path("clips").mkdir(exist_ok=True)
for k in range(6):
    t = np.arange(16000 + 2000 * k) / 16000
    tone = np.sin(2 * np.pi * (200 + 60 * k + 300 * t) * t) * np.hanning(len(t))
    tone += 0.4 * np.sin(2 * np.pi * (1500 - 400 * t) * t)
    with wave.open(f"clips/{k}.wav", "wb") as file:
        file.setnchannels(1)
        file.setsampwidth(2)
        file.setframerate(16000)
        file.writeframes((tone * 12000).astype("<i2").tobytes())

# %% [markdown]
# ## The pipeline
#
# SpecAugment is `fn.erase` on a spectrogram `ft`: bands along `f`, and along `t`. `fill_value=0` is the mean after `normalize`. Anchors and
# extents are random numbers, one for each band. Clips have different lengths, so bands of time are shares of them.

# %%
import headrace
from headrace import fn, pipeline_def

BANDS = 2


def bands(data, axis, widest):
    """Erase `BANDS` bands along an axis, each up to `widest` of its extent wide."""
    width = fn.random.uniform(range=[0.0, widest], shape=[BANDS])
    start = fn.random.uniform(range=[0.0, 1.0 - widest], shape=[BANDS])
    return fn.erase(data, anchor=start, shape=width, axis_names=axis, normalized=True, fill_value=0)


@pipeline_def(batch_size=3, num_threads=2, device_id=None, seed=4)
def training():
    files, labels = fn.readers.file(
        files=[f"clips/{k}.wav" for k in range(6)], random_shuffle=True, name="reader"
    )
    audio, rate = fn.decoders.audio(files, downmix=True, sample_rate=16000)
    audio = fn.audio_resample(audio, scale=fn.random.uniform(range=[0.9, 1.1]))  # speed
    audio = audio + 0.005 * fn.random.normal(audio)  # noise
    audio = fn.preemphasis_filter(audio)
    power = fn.spectrogram(audio, nfft=512, window_length=400, window_step=160)
    mel = fn.mel_filter_bank(power, sample_rate=16000, nfilter=80, freq_high=8000)
    clean = fn.normalize(fn.to_decibels(mel, cutoff_db=-80), axes=[1])
    masked = bands(bands(clean, "f", 0.2), "t", 0.15)
    return clean, masked, labels


pipe = training()
clean, masked, labels = pipe.run()
clean.shape()

# %%
headrace.show((clean, masked), layout="ft")

# %% [markdown]
# ## Batches
#
# Clips differ in length. `pad` makes a dense batch, and the lengths go along.

# %%
from headrace.plugin.pytorch import DALIGenericIterator


@pipeline_def(batch_size=3, num_threads=2, device_id=None, seed=4)
def padded():
    files, labels = fn.readers.file(files=[f"clips/{k}.wav" for k in range(6)], name="reader")
    audio, _ = fn.decoders.audio(files, downmix=True)
    power = fn.spectrogram(audio, nfft=512, window_length=400, window_step=160)
    features = fn.to_decibels(fn.mel_filter_bank(power, sample_rate=16000, nfilter=80))
    length = features.shape()[1]
    return fn.pad(features, fill_value=-80), length, labels


for (batch,) in DALIGenericIterator(
    padded(), ["features", "length", "label"], reader_name="reader"
):
    print(batch["features"].shape, batch["length"].ravel().tolist())

# %% [markdown]
# ## The same without a pipeline
#
# In [dynamic mode](../dynamic.md) operators are called on data, in a plain loop, with the same values.

# %%
import headrace.experimental.dynamic as ndd

reader = ndd.readers.File(files=[f"clips/{k}.wav" for k in range(6)])
rng = ndd.random.RNG(seed=42)
for files, _ in reader.next_epoch(batch_size=3):
    audio, _ = ndd.decoders.audio(files, downmix=True)
    gain = ndd.random.uniform(range=[0.5, 1.5], batch_size=audio.batch_size, rng=rng)
    power = ndd.spectrogram(audio * gain, nfft=512, window_length=400, window_step=160)
    mel = ndd.to_decibels(ndd.mel_filter_bank(power, sample_rate=16000, nfilter=80))
    print([tuple(sample.shape) for sample in mel.tensors])
