"""`fn.readers.sequence` against DALI."""

from __future__ import annotations

import warnings

import cv2
import numpy as np
import pytest

import headrace
from headrace import Pipeline, errors, fn, ops, types


@pytest.fixture
def root(tmp_path):
    """Streams of 5, 7 and 2 frames, whose pixels tell which is which; and what is no frame."""
    for name, count in (("b", 5), ("a", 7), ("c", 2)):
        folder = tmp_path / name
        folder.mkdir()
        for k in range(count):
            frame = np.full((6, 9, 3), [10 * k, ord(name), 7], np.uint8)
            cv2.imwrite(str(folder / f"{k:03d}.{('png', 'bmp', 'jpg')[k % 3]}"), frame)
    (tmp_path / "a" / "notes.txt").write_text("no frame")
    (tmp_path / "a" / "below").mkdir()
    (tmp_path / "top.png").write_bytes(b"no stream")
    return tmp_path


def read(lib, root, batches=2, batch_size=4, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        pipe = lib.Pipeline(batch_size=batch_size, num_threads=2, device_id=None, seed=1)
        with pipe:
            pipe.set_outputs(lib.fn.readers.sequence(file_root=str(root), name="frames", **options))
        pipe.build()
    found = [pipe.run()[0] for _ in range(batches)]
    meta = pipe.reader_meta("frames")
    return [np.asarray(b.at(k)) for b in found for k in range(batch_size)], found[0].layout(), meta


def test_against_dali(root):
    from nvidia import dali

    for options in (
        {"sequence_length": 3},
        {"sequence_length": 1},
        {"sequence_length": 3, "step": 2},
        {"sequence_length": 2, "stride": 3, "step": 4},
        {"sequence_length": 3, "image_type": "BGR"},
        {"sequence_length": 3, "image_type": "GRAY"},
        {"sequence_length": 3, "num_shards": 2, "shard_id": 1, "pad_last_batch": True},
    ):
        made = []
        for lib in (dali, headrace):
            given = dict(options)
            if "image_type" in given:
                given["image_type"] = getattr(lib.types, given["image_type"])
            made.append(read(lib, root, **given))
        (theirs, layout, meta), (ours, *rest) = made
        assert rest == [layout, meta]
        for a, b in zip(theirs, ours, strict=True):
            assert (a.dtype, a.shape) == (b.dtype, b.shape)
            assert np.abs(a.astype(int) - b).max() <= 2, options


def test_shuffled_epochs_hold_the_same(root):
    kept, mixed = (
        read(headrace, root, sequence_length=3, random_shuffle=shuffled, initial_fill=4)[0]
        for shuffled in (False, True)
    )
    names = [sorted(sequence.tobytes() for sequence in each) for each in (kept, mixed)]
    assert names[0] == names[1]


def test_the_old_names(root):
    options = {"file_root": str(root), "sequence_length": 3}
    for make in (
        lambda: fn.sequence_reader(**options),
        lambda: ops.SequenceReader(**options)(),
        lambda: ops.readers.Sequence(**options)(),
        lambda: fn.readers.sequence(**options),
    ):
        pipe = Pipeline(batch_size=2, num_threads=1, device_id=None)
        with pipe:
            with pytest.warns(DeprecationWarning, match="deprecated"):
                found = make()
            pipe.set_outputs(found)
        assert pipe.run()[0].at(0).shape == (3, 6, 9, 3)


@pytest.mark.parametrize(
    ("options", "words"),
    [
        ({"sequence_length": 0}, "`sequence_length` must be at least 1, got 0"),
        ({"sequence_length": 2, "step": 0}, "`step` must be at least 1, got 0"),
        ({"sequence_length": 2, "stride": -1}, "`stride` must be at least 1, got -1"),
        ({"sequence_length": 8}, "has the 8 frames that a sequence spans"),
        ({"sequence_length": 4, "stride": 3}, "has the 10 frames"),
        ({"sequence_length": 2, "image_type": types.YCbCr}, "RGB, BGR or GRAY, got YCbCr"),
    ],
)
def test_errors(root, options, words):
    with pytest.raises(errors.HeadraceError, match=words):
        read(headrace, root, **options)


def test_bad_frames(root):
    cv2.imwrite(str(root / "b" / "001.bmp"), np.zeros((4, 9, 3), np.uint8))
    with pytest.raises(errors.BadSampleError, match=r"Frame 1 .*\(4, 9, 3\).*frames must be alike"):
        read(headrace, root, sequence_length=3)
    (root / "b" / "001.bmp").write_bytes(b"broken")
    with pytest.raises(errors.BadSampleError, match=r"b/000\.png"):
        read(headrace, root, sequence_length=3)
