"""Thousands of damaged containers: each is read right, or refused with an error that names it."""

from __future__ import annotations

import contextlib
import io
import json
import re
from collections import Counter

import numpy as np
import pytest
import soundfile

from headrace import Pipeline, fn
from headrace.errors import BadSampleError, HeadraceError
from headrace.kernels.cpu.audio.wave_header import read_wave_header
from tests.support.encoded_images import pngs
from tests.support.fuzz import FILES, outcomes
from tests.support.speech import encoded


def batch_of(reader, **args):
    """Samples of the first batch, as lists of arrays."""
    pipe = Pipeline(4, 1, None, prefetch_queue_depth=1)
    with pipe:
        found = reader(**args)
        pipe.set_outputs(*(found if isinstance(found, (list, tuple)) else (found,)))
    return [list(map(np.array, out)) for out in pipe.run()]


@FILES
def test_arrays(tmp_path, count):
    path = tmp_path / "a.npy"
    array = np.arange(24, dtype=np.int16).reshape(2, 3, 4)
    np.save(path, array)
    seen = Counter()
    for _mutant, found in outcomes(
        path,
        path.read_bytes(),
        count,
        lambda: batch_of(fn.readers.numpy, files=[str(path)])[0][0],
        hot=128,
    ):
        seen[type(found)] += 1
        if not isinstance(found, HeadraceError):
            np.testing.assert_array_equal(found, np.load(path))
    assert len(seen) > 1


@FILES
@pytest.mark.parametrize("name", ["mono_s16.wav", "stereo_extensible.wav", "mono_s24.wav"])
def test_wave_files(tmp_path, count, name):
    path = tmp_path / "clip.wav"
    seen = Counter()
    for mutant, found in outcomes(path, encoded(name).tobytes(), count // 3, decode(path), hot=80):
        seen[isinstance(found, HeadraceError)] += 1
        if not isinstance(found, HeadraceError):
            assert found.size <= len(mutant)
            if read_wave_header(np.frombuffer(mutant, np.uint8)) is not None:
                with contextlib.suppress(soundfile.LibsndfileError):
                    wanted, _ = soundfile.read(io.BytesIO(mutant), dtype="float32", always_2d=True)
                    np.testing.assert_array_equal(found, wanted)
    assert len(seen) == 2


@FILES
@pytest.mark.parametrize("name", ["mono_s16.flac", "stereo_s24.flac"])
def test_flac_files_have_check_sums(tmp_path, count, name):
    path = tmp_path / "clip.flac"
    path.write_bytes(encoded(name).tobytes())
    wanted = decode(path)()
    seen = Counter()
    for _, found in outcomes(path, path.read_bytes(), count // 2, decode(path), hot=200):
        seen[isinstance(found, HeadraceError)] += 1
        if not isinstance(found, HeadraceError):
            np.testing.assert_array_equal(found, wanted)
    assert seen[True]


def decode(path):
    def read():
        pipe = Pipeline(1, 1, None, prefetch_queue_depth=1)
        with pipe:
            data, _ = fn.readers.file(files=[str(path)])
            pipe.set_outputs(fn.decoders.audio(data)[0])
        return np.array(pipe.run()[0][0])

    return read


@FILES
def test_file_lists(tmp_path, count):
    np.save(tmp_path / "c.npy", np.arange(3))
    for name in ("a.bin", "b.bin"):
        (tmp_path / name).write_bytes(b"1")
    path = tmp_path / "list.txt"
    entries = [
        {"audio_filepath": f"{tmp_path}/a.wav", "duration": 0.2, "text": "one"},
        {"audio_filepath": f"{tmp_path}/b.wav", "duration": 0.1, "offset": 0.05, "text": "two"},
    ]
    manifest = "\n".join(map(json.dumps, entries)).encode()
    kinds = (
        (fn.readers.file, {"file_list": str(path)}, b"a.bin 3\nb.bin 14\nc.npy -5\n"),
        (fn.readers.numpy, {"file_list": str(path)}, b"c.npy\nc.npy\n"),
        (
            fn.readers.nemo_asr,
            {"manifest_filepaths": [str(path)], "read_text": True},
            manifest,
        ),
    )
    for name in ("a.wav", "b.wav"):
        (tmp_path / name).write_bytes(encoded("mono_s16.wav").tobytes())
    for reader, arguments, content in kinds:
        seen = Counter()
        for _, found in outcomes(
            path,
            content,
            count // 3,
            lambda: about_named_files(reader, arguments),  # noqa: B023
        ):
            seen[isinstance(found, Exception)] += 1
        assert len(seen) == 2, reader


def about_named_files(reader, arguments):
    """Samples; an error about a file that the list names, wrongly, names that one."""
    try:
        return batch_of(reader, **arguments)
    except BadSampleError as error:
        assert re.search(r"The file |is a directory|\.npy|\.wav", str(error))  # noqa: PT017
        return error


@FILES
@pytest.mark.parametrize("name", ["png-rgb8", "png-palette8"])
def test_png_files_have_check_sums(tmp_path, count, name):
    path = tmp_path / "picture.png"
    content = pngs()[name]
    path.write_bytes(content)

    def read():
        pipe = Pipeline(1, 1, None, prefetch_queue_depth=1)
        with pipe:
            data, _ = fn.readers.file(files=[str(path)])
            pipe.set_outputs(fn.decoders.image(data))
        return np.array(pipe.run()[0][0])

    wanted = read()
    seen = Counter()
    for _, found in outcomes(path, content, count // 2, read, hot=100):
        seen[isinstance(found, HeadraceError)] += 1
        if not isinstance(found, HeadraceError):
            np.testing.assert_array_equal(found, wanted)
    assert seen[True]
