"""`decoders.audio` of several files in one call: as of each alone."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import errors, fn, pipeline_def, types
from tests.support.speech import FOLDER, encode, encoded

PLAIN = sorted(path.name for path in FOLDER.glob("*_[sfu][0-9]*.wav"))
OTHERS = ["mono_s16.flac", "stereo_s24.flac", "mono_ulaw.wav", "stereo_vorbis.ogg", "mono_s16.aiff"]


def decoded(files, *, together, batches=2, threads=2, **settings):
    size = len(files) if together else 1

    @pipeline_def(batch_size=size, num_threads=threads, device_id=None)
    def pipeline():
        batches = [files[k : k + size] for k in range(0, len(files), size)]
        data = fn.external_source(source=batches, cycle=True)
        audio, rates = fn.decoders.audio(data, **settings)
        return audio, rates

    pipe = pipeline()
    found = []
    for _ in range(batches):
        runs = [pipe.run() for _ in range(0, len(files), size)]
        found += [np.array(audio.at(k)) for audio, _ in runs for k in range(size)]
        found += [np.array(rates.at(k)) for _, rates in runs for k in range(size)]
    return found


@pytest.mark.sweep
@pytest.mark.parametrize("dtype", ["FLOAT", "INT16", "INT32"])
@pytest.mark.parametrize("downmix", [False, True])
@pytest.mark.parametrize("names", ["plain", "all"])
def test_files_decoded_together_are_those_decoded_alone(dtype, downmix, names):
    files = [encoded(name) for name in PLAIN + (OTHERS if names == "all" else [])]
    settings = {"dtype": getattr(types, dtype), "downmix": downmix}
    alone = decoded(files, together=False, **settings)
    together = decoded(files, together=True, **settings)
    for one, other in zip(together, alone, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rate", [0.0, 8000.0, 16000.0, 16000.5])
def test_rates(rate):
    files = [
        encode(np.arange(300 + k, dtype=np.int16), rate=r) for k, r in enumerate((8000, 16000))
    ]
    alone = decoded(files, together=False, sample_rate=rate)
    together = decoded(files, together=True, sample_rate=rate)
    for one, other in zip(together, alone, strict=True):
        np.testing.assert_array_equal(one, other)


def test_files_of_one_length_lie_side_by_side():
    files = [encode(np.full(20, k, np.int16)) for k in range(6)]

    @pipeline_def(batch_size=6, num_threads=2, device_id=None)
    def pipeline():
        data = fn.external_source(source=lambda: files)
        audio, rates = fn.decoders.audio(data, dtype=types.INT16)
        return audio, rates

    audio, rates = pipeline().run()
    assert audio.is_dense_tensor()
    assert np.asarray(audio.as_tensor())[:, 3, 0].tolist() == list(range(6))
    assert rates.is_dense_tensor()


def test_empty_files_are_decoded_among_others():
    files = [encode(np.arange(n, dtype=np.int16)) for n in (0, 5, 0, 1)]
    together = decoded(files, together=True, downmix=True)
    assert [x.shape for x in together[:4]] == [(0,), (5,), (0,), (1,)]


def test_a_bad_file_among_good_ones_is_told():
    files = [encode(np.arange(9, dtype=np.int16)) for _ in range(4)]
    files[2] = files[2][:-4]

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def pipeline():
        return fn.decoders.audio(fn.external_source(source=lambda: files))[0]

    with pytest.raises(errors.BadSampleError, match="cut off") as caught:
        pipeline().run()
    assert caught.value.where.sample == 2
