"""`fn.readers.nemo_asr` against DALI."""

from __future__ import annotations

import json
import random
import warnings

import numpy as np
import pytest

from tests.parity.support import LIBRARIES, assert_both_raise
from tests.support.speech import CLIPS, FOLDER, encode

RATES = (8000, 16000, 8000, 16000, 11025)


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("speech")
    for k, rate in enumerate(RATES):
        samples = np.random.default_rng(k).integers(-9000, 9000, (800 + 100 * k, 1 + k % 2))
        encode(samples.astype(np.int16), rate).tofile(folder / f"{k}.wav")
    return folder


def entries(folder, count=5, **more):
    return [
        {
            "audio_filepath": str(folder / f"{k % len(RATES)}.wav"),
            "duration": 0.05 + 0.01 * k,
            "text": f"Number {k}",
            **more,
        }
        for k in range(count)
    ]


def manifest(folder, lines, name="manifest.json"):
    path = folder / name
    text = lines if isinstance(lines, str) else "".join(json.dumps(line) + "\n" for line in lines)
    path.write_text(text, encoding="utf-8")
    return str(path)


def read(library, *manifests, batches=3, batch_size=3, pipeline=None, **arguments):
    lib = LIBRARIES[library]
    if "dtype" in arguments:
        arguments["dtype"] = getattr(lib.types, arguments["dtype"])
    options = {"num_threads": 2, "device_id": None, "seed": 42} | (pipeline or {})
    pipe = lib.pipeline.Pipeline(batch_size=batch_size, **options)
    with pipe:
        outputs = lib.fn.readers.nemo_asr(
            manifest_filepaths=list(manifests), name="reader", **arguments
        )
        pipe.set_outputs(*(outputs if isinstance(outputs, (list, tuple)) else [outputs]))
    pipe.build()
    meta = {k: int(v) for k, v in pipe.reader_meta("reader").items()}
    found = []
    for _ in range(batches):
        for output in pipe.run():
            found.append((int(output.dtype), output.layout()))
            found += [np.array(output.at(k)) for k in range(len(output))]
    return found, meta


def assert_same(*manifests, levels=0, **arguments):
    ours, our_meta = read("headrace", *manifests, **arguments)
    theirs, their_meta = read("dali", *manifests, **arguments)
    assert our_meta == their_meta
    assert len(ours) == len(theirs)
    for mine, other in zip(ours, theirs, strict=True):
        if isinstance(other, tuple):
            assert mine == other
            continue
        assert mine.shape == other.shape
        assert mine.dtype == other.dtype
        if other.dtype.kind == "f":
            np.testing.assert_allclose(mine, other, rtol=1e-5, atol=1e-5)
        else:
            np.testing.assert_allclose(mine.astype(float), other.astype(float), atol=levels, rtol=0)


@pytest.mark.parametrize(
    "arguments",
    [
        {},
        {"read_idxs": True},
        {"read_text": False},
        {"read_sample_rate": False},
        {"read_text": False, "read_sample_rate": False},
        {"read_text": False, "read_sample_rate": False, "read_idxs": True},
        {"downmix": False},
        {"sample_rate": 8000},
        {"sample_rate": 12345.5, "quality": 20},
        {"sample_rate": 0},
        {"sample_rate": -1},
        {"sample_rate": 16000, "downmix": False},
        {"dtype": "INT16"},
        {"dtype": "INT16", "downmix": False, "sample_rate": 11025},
        {"min_duration": 0.06, "read_idxs": True},
        {"max_duration": 0.07, "read_idxs": True},
        {"min_duration": 0.055, "max_duration": 0.08, "read_idxs": True},
        {"dont_use_mmap": True, "prefetch_queue_depth": 2, "read_ahead": True, "lazy_init": True},
        {"tensor_init_bytes": 100, "bytes_per_sample_hint": 100},
    ],
)
def test_arguments(folder, arguments):
    assert_same(manifest(folder, entries(folder)), levels=1, **arguments)


def test_32_bits(folder):
    assert_same(manifest(folder, entries(folder)), dtype="INT32", levels=300)


@pytest.mark.sweep
@pytest.mark.parametrize("sample_rate", [-1, 16000])
@pytest.mark.parametrize(
    "part",
    [
        {"offset": 0.0501, "duration": 0.01006},
        {"offset": 0.05},
        {"duration": 0.02},
        {"offset": 0.04, "duration": 9.5},
        {"offset": 0.05006, "duration": 0.01001},
        {"offset": -1, "duration": 0.01},
        {"duration": 0.0},
        {"duration": -1.0},
        {"duration": 0.00006},
        {"offset": 0.00006, "duration": 5},
    ],
)
def test_parts_of_files(folder, part, sample_rate):
    lines = [
        {"audio_filepath": str(folder / f"{k}.wav"), "text": "x", **part} for k in range(len(RATES))
    ]
    assert_same(manifest(folder, lines), sample_rate=sample_rate, batches=2)


@pytest.mark.parametrize("name", CLIPS)
def test_parts_of_compressed_files(folder, name):
    lines = [
        {"audio_filepath": str(FOLDER / name), "offset": offset, "duration": 0.5}
        for offset in (0, 0.3, 1.01, 1.9)
    ]
    assert_same(manifest(folder, lines), batches=1, batch_size=4)


@pytest.mark.parametrize("kind", ["WAV", "FLAC"])
def test_parts_of_large_files(folder, kind):
    samples = np.random.default_rng(0).integers(-9000, 9000, (1_500_000, 2)).astype(np.int16)
    path = folder / f"long.{kind}"
    encode(samples, 16000, kind).tofile(path)
    lines = [
        {"audio_filepath": str(path), "offset": offset, "duration": duration}
        for offset, duration in ((0, 1), (50.01, 2), (92.9, 5), (93.75, 1))
    ]
    assert_same(manifest(folder, lines), batches=1, batch_size=4)
    assert_same(manifest(folder, lines), batches=1, batch_size=4, downmix=False, dtype="INT16")
    if kind == "WAV":
        np.fromfile(path, np.uint8)[:-1000].tofile(path)
        with pytest.raises(RuntimeError, match="cut off"):
            read("headrace", manifest(folder, lines))
    path.unlink()


@pytest.mark.parametrize(
    "text",
    ['"plain"', '"\\u00fcn\\u00ef \\"quoted\\" \\n"', '"üní 日本"', '""', "null"],
)
def test_texts(folder, text):
    path = folder / "0.wav"
    if text == "null":  # DALI's parser ends the process
        return
    assert_same(manifest(folder, f'{{"audio_filepath": "{path}", "text": {text}}}\n'))


def test_forms_of_lines(folder):
    one, two = (json.dumps(e) for e in entries(folder, 2))
    for text in (
        f"{one}\n\n  \n{two}",
        f"{one}\n{two}",
        f"{one}\r\n{two}\r\n",
        f"{one},\n{two}",
        f"  {one}\n\t{two}\n",
        json.dumps(entries(folder, 1, lang="en", more={"a": [1, {}]}, no=None, yes=True)[0]),
        json.dumps({"audio_filepath": str(folder / "0.wav")}),
    ):
        assert_same(manifest(folder, text), read_idxs=True)


def test_lines_that_are_left_out(folder):
    one = json.dumps(entries(folder, 1)[0])
    for bad in ("hello", "{'audio_filepath': 1}", '{"duration": 1}', "{", '{"audio_filepath": ""}'):
        path = manifest(folder, f"{bad}\n{one}\n")
        with warnings.catch_warnings(record=True) as caught:
            warnings.simplefilter("always")
            found, meta = read("headrace", path, batches=1, batch_size=1)
        assert meta["epoch_size"] == 1
        assert any("Line 1" in str(w.message) for w in caught)
        assert found[1].size == 400


def test_objects_over_several_lines_and_side_by_side(folder):
    # DALI ends the process for the first and reads one of the second.
    both = [json.dumps(e, indent=2) for e in entries(folder, 2)]
    assert read("headrace", manifest(folder, "\n".join(both)))[1]["epoch_size"] == 2
    assert read("headrace", manifest(folder, "".join(both)))[1]["epoch_size"] == 2


def test_several_manifests(folder):
    lines = entries(folder, 5)
    first, second = manifest(folder, lines[:2], "a.json"), manifest(folder, lines[2:], "b.json")
    assert_same(first, second, read_idxs=True)
    assert_same(first, second, read_idxs=True, min_duration=0.06)


def orders():
    rng = random.Random(5)
    for _ in range(40):
        size = rng.choice([1, 2, 3, 7, 16, 33])
        shards = rng.randint(1, min(size, 4))
        arguments = {
            "num_shards": shards,
            "shard_id": rng.randrange(shards),
            "pad_last_batch": rng.random() < 0.5,
        }
        mode = rng.choice(["plain", "random", "after"])
        if mode == "random":
            arguments |= {
                "random_shuffle": True,
                "initial_fill": rng.choice([1, 2, 5, 1024]),
                "seed": rng.choice([0, 1, 12345, 2**31 - 1]),
            }
        if mode == "after":
            arguments["shuffle_after_epoch"] = True
            if rng.random() < 0.5:
                arguments["shuffle_after_epoch_seed"] = rng.randrange(1000)
        elif rng.random() < 0.5:
            arguments["stick_to_shard"] = True
        yield size, rng.choice([1, 2, 5]), arguments


@pytest.mark.parametrize(("size", "batch_size", "arguments"), list(orders()))
def test_orders(folder, size, batch_size, arguments):
    assert_same(
        manifest(folder, entries(folder, size)),
        batches=2 * size // batch_size + 4,
        batch_size=batch_size,
        read_text=False,
        read_sample_rate=False,
        read_idxs=True,
        **arguments,
    )


def assert_errors(*manifests, match=None, **arguments):
    for library in LIBRARIES:
        with pytest.raises(Exception, match=match if library == "headrace" else None) as caught:
            read(library, *manifests, **arguments)
    return str(caught.value)


def test_errors(folder, tmp_path):
    good = manifest(folder, entries(folder), "good.json")
    assert_errors(str(tmp_path / "none.json"), match="does not exist")
    assert_errors(match="at least one")
    assert_errors(good, min_duration=100, match="No files found")
    assert_errors(good, dtype="UINT8", match="INT16")
    assert_errors(good, sample_rate=1000, quality=101, match="quality")
    assert_errors(good, num_shards=9, match="shards")
    gone = manifest(folder, [{"audio_filepath": str(tmp_path / "none.wav")}], "gone.json")
    assert "none.wav" in assert_errors(gone, match="does not exist")
    (tmp_path / "text.wav").write_text("this is no audio")
    text = manifest(folder, [{"audio_filepath": str(tmp_path / "text.wav")}], "text.json")
    assert "text.wav" in assert_errors(text, match="no audio file")
    behind = entries(folder, 1, offset=100)
    assert_errors(manifest(folder, behind, "behind.json"), match="begin at 100")
    empty = manifest(folder, "", "empty.json")
    assert_both_raise(
        lambda lib: tuple(lib.fn.readers.nemo_asr(manifest_filepaths=[empty])), match="No files"
    )


def test_the_file_is_told(folder):
    pipe = LIBRARIES["headrace"].pipeline.Pipeline(batch_size=1, num_threads=1, device_id=None)
    with pipe:
        pipe.set_outputs(
            *LIBRARIES["headrace"].fn.readers.nemo_asr(
                manifest_filepaths=manifest(folder, entries(folder))
            )
        )
    assert pipe.run()[0][0].source_info() == str(folder / "0.wav")
