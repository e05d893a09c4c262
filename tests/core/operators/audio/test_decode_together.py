"""`decoders.audio` of several files in one call: as of each alone."""

from __future__ import annotations

import numpy as np
import pytest

from penstock import errors, fn, pipeline_def, types
from penstock.operators.audio.decode_audio import DecodeAudio
from tests.support.speech import FOLDER, encode, encoded

PLAIN = sorted(path.name for path in FOLDER.glob("*_[sfu][0-9]*.wav"))
OTHERS = ["mono_s16.flac", "stereo_s24.flac", "mono_ulaw.wav", "stereo_vorbis.ogg", "mono_s16.aiff"]


def decoded(files, monkeypatch, *, together, batches=2, threads=2, **settings):
    alone = []

    def cpu(self, c, *inputs, original=DecodeAudio.cpu):
        alone.append(c.index)
        return original(self, c, *inputs)

    with monkeypatch.context() as patch:
        patch.setattr(DecodeAudio, "cpu", cpu)
        if not together:
            patch.setattr(DecodeAudio, "cpu_together", None)

        @pipeline_def(batch_size=len(files), num_threads=threads, device_id=None)
        def pipeline():
            data = fn.external_source(source=lambda: files)
            audio, rates = fn.decoders.audio(data, **settings)
            return audio, rates

        pipe = pipeline()
        found = []
        for _ in range(batches):
            for output in pipe.run():
                found += [np.array(output.at(k)) for k in range(len(files))]
    return found, alone


@pytest.mark.parametrize("dtype", ["FLOAT", "INT16", "INT32"])
@pytest.mark.parametrize("downmix", [False, True])
@pytest.mark.parametrize("names", ["plain", "all"])
def test_files_decoded_together_are_those_decoded_alone(monkeypatch, dtype, downmix, names):
    files = [encoded(name) for name in PLAIN + (OTHERS if names == "all" else [])]
    settings = {"dtype": getattr(types, dtype), "downmix": downmix}
    alone, count = decoded(files, monkeypatch, together=False, **settings)
    assert len(count) >= 2 * len(files)
    together, rest = decoded(files, monkeypatch, together=True, **settings)
    # 44 bytes of header leave numbers of 64 bits at odd places.
    assert len({k for k in rest if not PLAIN[k : k + 1] or "f64" not in PLAIN[k]}) == (
        len(OTHERS) if names == "all" else 0
    )
    for one, other in zip(together, alone, strict=True):
        assert one.dtype == other.dtype
        np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("rate", [0.0, 8000.0, 16000.0, 16000.5])
def test_rates(monkeypatch, rate):
    files = [
        encode(np.arange(300 + k, dtype=np.int16), rate=r) for k, r in enumerate((8000, 16000))
    ]
    alone, _ = decoded(files, monkeypatch, together=False, sample_rate=rate)
    together, _ = decoded(files, monkeypatch, together=True, sample_rate=rate)
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


def test_empty_files_are_decoded_among_others(monkeypatch):
    files = [encode(np.arange(n, dtype=np.int16)) for n in (0, 5, 0, 1)]
    together, alone = decoded(files, monkeypatch, together=True, downmix=True)
    assert [x.shape for x in together[:4]] == [(0,), (5,), (0,), (1,)]
    assert not alone


def test_a_bad_file_among_good_ones_is_told():
    files = [encode(np.arange(9, dtype=np.int16)) for _ in range(4)]
    files[2] = files[2][:-4]

    @pipeline_def(batch_size=4, num_threads=2, device_id=None)
    def pipeline():
        return fn.decoders.audio(fn.external_source(source=lambda: files))[0]

    with pytest.raises(errors.BadSampleError, match="cut off") as caught:
        pipeline().run()
    assert caught.value.where.sample == 2
