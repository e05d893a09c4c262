"""`fn.decoders.audio` and the operators behind it in pipelines: bad files, threads, options."""

from __future__ import annotations

import json

import numpy as np
import pytest

from headrace import errors, fn, pipeline_def, types
from tests.support.speech import CLIPS, FOLDER, decoded, encode, encoded

KINDS = {
    "cut": (lambda data: data[: data.size // 2], "cut off"),
    "empty": (lambda data: data[:0], "empty"),
    "garbage": (lambda data: np.random.default_rng(0).integers(0, 256, 700, np.uint8), "no audio"),
    "text": (lambda data: np.frombuffer(b"A letter, not a sound.", np.uint8), "no audio"),
    "flac": (lambda data: encoded("signal.flac")[:9000], "damaged"),
}
FILES = 12


def clip(number):
    return encode(np.full(50 + number, number + 1, np.int16))


@pytest.fixture
def files(tmp_path):
    paths = []
    for k in range(FILES):
        paths.append(str(tmp_path / f"{k:02}.wav"))
        clip(k).tofile(paths[-1])
    return paths


def numbers(paths, batches=6, **settings):
    @pipeline_def(batch_size=3, num_threads=2, device_id=None, **settings)
    def pipeline():
        data, labels = fn.readers.file(files=paths, dont_use_mmap=True, name="reader")
        audio, _ = fn.decoders.audio(data, dtype=types.INT16, downmix=True)
        return audio, labels

    pipe = pipeline()
    found = []
    for _ in range(batches):
        audio, labels = pipe.run()
        found += [(int(np.asarray(labels.at(k))[0]), np.asarray(audio.at(k))) for k in range(3)]
    return found


@pytest.mark.parametrize("kind", KINDS)
def test_errors_name_the_file(files, kind):
    damage, word = KINDS[kind]
    damage(np.fromfile(files[4], np.uint8)).tofile(files[4])
    with pytest.raises(errors.BadSampleError, match=word) as caught:
        numbers(files)
    assert files[4] in str(caught.value)
    assert "decoders.audio" in str(caught.value)


@pytest.mark.parametrize("kind", KINDS)
def test_bad_files_are_skipped(files, kind):
    damage, _ = KINDS[kind]
    damage(np.fromfile(files[4], np.uint8)).tofile(files[4])
    found = numbers(files, on_bad_sample="skip")
    assert 4 not in [label for label, _ in found]
    for label, audio in found:
        np.testing.assert_array_equal(audio, np.full(50 + label, label + 1))


def test_the_pipeline_goes_on_behind_an_error(files):
    KINDS["cut"][0](np.fromfile(files[4], np.uint8)).tofile(files[4])

    @pipeline_def(batch_size=3, num_threads=2, device_id=None)
    def pipeline():
        data, labels = fn.readers.file(files=files)
        return fn.decoders.audio(data, dtype=types.INT16)[0], labels

    pipe = pipeline()
    pipe.run()
    with pytest.raises(errors.BadSampleError):
        pipe.run()
    audio, labels = pipe.run()
    assert [int(np.asarray(labels.at(k))[0]) for k in range(3)] == [6, 7, 8]
    np.testing.assert_array_equal(np.asarray(audio.at(1)), np.full((57, 1), 8))


def chain(**settings):
    data = [encoded(name) for name in CLIPS]

    @pipeline_def(batch_size=4, device_id=None, seed=5, **settings)
    def pipeline():
        encoded = fn.external_source(source=lambda: data)
        audio, rate = fn.decoders.audio(encoded, downmix=True, sample_rate=11025)
        begin, length = fn.nonsilent_region(audio, cutoff_db=-40)
        speech = fn.slice(audio, begin, length, axes=[0])
        part = fn.slice(
            speech,
            rel_start=fn.random.uniform(range=[0, 0.5], shape=[1]),
            shape=[8000],
            axes=[0],
            out_of_bounds_policy="pad",
        )
        slower = fn.audio_resample(part, scale=fn.random.uniform(range=[0.8, 1.2]))
        return fn.preemphasis_filter(slower), fn.normalize(part), rate

    pipe = pipeline()
    return [[np.asarray(t.at(k)) for t in pipe.run() for k in range(4)] for _ in range(3)]


def test_neither_threads_nor_fusion_change_a_bit():
    expected = chain(num_threads=1)
    for settings in ({"num_threads": 4}, {"num_threads": 1, "fuse": False}):
        for batch, wanted in zip(chain(**settings), expected, strict=True):
            for got, want in zip(batch, wanted, strict=True):
                np.testing.assert_array_equal(got, want)


def test_speech_is_found_between_silence():
    speech = decoded(encoded("river.flac"))[:, 0]
    around = np.concatenate([np.zeros(5000), speech, np.zeros(7000)]).astype(np.float32)

    @pipeline_def(batch_size=1, num_threads=1, device_id=None)
    def pipeline():
        audio = fn.external_source(source=lambda: [around])
        return tuple(fn.nonsilent_region(audio, cutoff_db=-50, window_length=512))

    begin, length = (int(np.asarray(t.at(0))) for t in pipeline().run())
    assert 4000 < begin < 7000
    assert len(speech) * 0.8 < length <= len(speech) + 1024


def nemo(tmp_path, lines, **arguments):
    path = tmp_path / "manifest.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    @pipeline_def(batch_size=2, num_threads=2, device_id=None, enable_checkpointing=True, seed=3)
    def pipeline():
        return tuple(
            fn.readers.nemo_asr(
                manifest_filepaths=[str(path)], read_idxs=True, name="reader", **arguments
            )
        )

    return pipeline


def clips():
    return [
        json.loads(line) | {"audio_filepath": str(FOLDER / json.loads(line)["audio_filepath"])}
        for line in (FOLDER / "clips.json").read_text().splitlines()
    ]


def test_the_manifest_of_the_speech(tmp_path):
    lines = clips()
    audio, rate, text, _ = nemo(tmp_path, lines)().run()
    for k in range(2):
        assert bytes(np.asarray(text.at(k))).decode() == lines[k]["text"]
        assert float(np.asarray(rate.at(k))) == 16000
        assert np.asarray(audio.at(k)).shape[0] == pytest.approx(
            lines[k]["duration"] * 16000, abs=2
        )


@pytest.mark.parametrize("steps", [0, 1, 3])
@pytest.mark.parametrize("order", [{}, {"random_shuffle": True}, {"shuffle_after_epoch": True}])
def test_nemo_goes_on_from_a_checkpoint(tmp_path, steps, order):
    def drawn(pipe, count):
        return [np.asarray(pipe.run()[3].at(k)).tolist() for _ in range(count) for k in range(2)]

    build = nemo(tmp_path, clips() * 3, **order)
    whole = build()
    whole.build()
    for _ in range(steps):
        whole.run()
    state = whole.checkpoint()
    expected = drawn(whole, 9)
    assert drawn(build(checkpoint=state), 9) == expected


def test_shards_of_nemo_are_disjoint_and_complete(tmp_path):
    seen = []
    for shard in range(3):
        pipe = nemo(tmp_path, clips() * 2, num_shards=3, shard_id=shard, stick_to_shard=True)()
        indices = [int(np.asarray(t[3].at(k))[0]) for t in [pipe.run()] for k in range(2)]
        seen += indices
    assert len(set(seen)) == 6


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_bad_utterances_are_left_out(tmp_path, policy):
    bad = tmp_path / "bad.wav"
    encoded("mono_s16.wav")[:999].tofile(bad)
    lines = [*clips(), {"audio_filepath": str(bad)}, {"audio_filepath": str(tmp_path / "none")}]
    path = tmp_path / "manifest.json"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))

    @pipeline_def(batch_size=3, num_threads=2, device_id=None, on_bad_sample=policy)
    def pipeline():
        return tuple(fn.readers.nemo_asr(manifest_filepaths=[str(path)], read_idxs=True))

    pipe = pipeline()
    numbers = []
    for _ in range(4):
        audio, _, text, numbered = pipe.run()
        for k in range(3):
            number = int(np.asarray(numbered.at(k))[0])
            numbers.append(number)
            assert bytes(np.asarray(text.at(k))).decode() == lines[number]["text"]
            assert np.asarray(audio.at(k)).size > 30000
    assert set(numbers) == {0, 1, 2, 3}
