"""Lazy images that are computed several at a time: the same as one by one, whatever the files."""

from __future__ import annotations

from typing import ClassVar

import numpy as np
import pytest

from headrace import errors, fn, pipeline_def, types
from headrace.kernels.cpu.decode import pixels
from headrace.kernels.cpu.decode.header import read_header
from headrace.kernels.cpu.decode.image_header import U8
from headrace.operators import Input, SampleOperator, operator
from headrace.operators.support.resize import image_groups
from tests.support.encoded_images import everything, jpegs
from tests.support.images import encoded

_PLAIN = [encoded(60 + 9 * k, 90 - 7 * k, seed=k) for k in range(9)]


def _can_be_decoded(data: bytes) -> bool:
    array = np.frombuffer(data, np.uint8)
    try:
        pixels.decode(
            array, read_header(data), pixels.PixelFormat("RGB", U8), None, np.empty, np.empty
        )
    except errors.BadSampleError:
        return False
    return True


_KINDS = [np.frombuffer(data, np.uint8) for data in everything().values() if _can_be_decoded(data)]


def _resized(x):
    return fn.resize(x, size=(24, 31))


def _normalised(x, **keywords):
    mirror = fn.random.coin_flip()
    return fn.crop_mirror_normalize(
        _resized(x), crop=(20, 18), mirror=mirror, mean=[9, 8, 7], std=[3, 2, 1], **keywords
    )


CHAINS = {
    "resize": _resized,
    "float": lambda x: fn.resize(
        x, resize_shorter=17, dtype=types.FLOAT, interp_type=types.INTERP_CUBIC
    ),
    "random crop": lambda x: fn.random_resized_crop(x, size=13),
    "resize, crop, mirror": lambda x: fn.resize_crop_mirror(
        x,
        resize_shorter=33,
        crop=(16, 12),
        mirror=fn.cast(fn.random.uniform(range=(0, 4)), dtype=types.INT32),
    ),
    "a mirrored window of it": lambda x: fn.crop_mirror_normalize(
        fn.resize_crop_mirror(x, resize_shorter=33, crop=(22, 24), mirror=3), crop=(9, 7), mirror=1
    ),
    "twice": lambda x: fn.resize(fn.resize(x, size=30), size=12),
    "flip between": lambda x: fn.resize(fn.flip(x, horizontal=fn.random.coin_flip()), size=15),
    "normalise": _normalised,
    "pixels": lambda x: _normalised(x, output_layout="HWC", dtype=types.UINT8),
    "pad": lambda x: _normalised(x, pad_output=True, dtype=types.FLOAT16),
    "half": lambda x: _normalised(x, dtype=types.FLOAT16),
    "outside": lambda x: fn.crop_mirror_normalize(
        _resized(x), crop=(40, 12), out_of_bounds_policy="pad", fill_values=5
    ),
    "mean of a sample": lambda x: fn.crop_mirror_normalize(
        _resized(x), mean=fn.random.uniform(range=(50, 90), shape=3), std=2.0
    ),
    "of its own size": lambda x: fn.resize(
        x, resize_x=fn.random.uniform(range=(8, 50)), resize_y=0
    ),
    "pixels alone": lambda x: fn.crop_mirror_normalize(x, crop=(9, 10), mirror=1),
}


def _run(chain, files, decode="image", *, batches=2, policy="raise", **keywords):
    decoding = {"output_type": keywords.pop("output_type", types.RGB)}
    if decode == "image_random_crop":
        decoding["random_area"] = [0.2, 0.9]

    @pipeline_def(
        batch_size=len(files), num_threads=1, device_id=None, seed=5, on_bad_sample=policy
    )
    def define():
        source = fn.external_source(source=lambda: files, batch=True)
        return chain(getattr(fn.decoders, decode)(source, **decoding)), fn.random.uniform()

    pipe = define(**keywords)
    try:
        return [[[np.array(s) for s in out] for out in pipe.run()] for _ in range(batches)]
    finally:
        # The batches ahead must not be noted by the test that comes next.
        pipe._engine.executor.shutdown(wait_seconds=60)


def _assert_same(ones, others):
    for one, other in zip(ones, others, strict=True):
        for a, b in zip(one, other, strict=True):
            assert [x.shape for x in a] == [x.shape for x in b]
            assert [x.tobytes() for x in a] == [x.tobytes() for x in b]


@pytest.mark.sweep
@pytest.mark.parametrize("name", CHAINS)
@pytest.mark.parametrize("decode", ["image", "image_random_crop"])
def test_groups_are_made_as_single_samples_are(name, decode):
    files = _PLAIN if name in ("outside", "pixels alone") else [*_PLAIN, *_KINDS]
    together = _run(CHAINS[name], files, decode)
    _assert_same(together, _run(CHAINS[name], files, decode, fuse=False))


@pytest.mark.parametrize("output_type", [types.GRAY, types.BGR, types.YCbCr])
def test_colours(output_type):
    files = [*_PLAIN, *_KINDS[::3]]
    for chain in (_resized, lambda x: fn.crop_mirror_normalize(_resized(x), crop=(9, 9))):
        together = _run(chain, files, output_type=output_type)
        _assert_same(together, _run(chain, files, output_type=output_type, fuse=False))


def test_images_of_their_own_channels():
    gray = np.frombuffer(jpegs()["jpeg-gray"], np.uint8)
    files = [gray, *_PLAIN[:3], gray, _PLAIN[4]]
    for chain in (_resized, lambda x: fn.crop_mirror_normalize(_resized(x), crop=(9, 9))):
        together = _run(chain, files, output_type=types.ANY_DATA)
        assert {x.size for x in together[0][0]} != {together[0][0][0].size}
        _assert_same(together, _run(chain, files, output_type=types.ANY_DATA, fuse=False))


@operator("testing.note_sample", inputs=Input("data"), hidden=True)
class NoteSample(SampleOperator):
    """Notes which samples it is given."""

    seen: ClassVar[list[int]] = []

    def cpu(self, c, data):
        self.seen.append(c.index)
        return data


def test_a_sample_that_failed_goes_no_further():
    NoteSample.seen.clear()
    with pytest.raises(errors.BadSampleError):
        _run(
            lambda x: fn.testing.note_sample(_resized(x)),
            _bad("cut off"),
            batches=1,
            workers="threads",  # a worker process would note them for itself
        )
    assert 0 in NoteSample.seen
    assert not {3, len(_PLAIN)} & set(NoteSample.seen)


def test_what_is_handed_on_is_not_computed_before(monkeypatch):
    finished, make = [], image_groups._kernels.resampling_loop

    def noted(images, *args, **keywords):
        finished.append(keywords["normalization"] is not None)
        return make(images, *args, **keywords)

    monkeypatch.setattr(image_groups._kernels, "resampling_loop", noted)
    _run(_normalised, _PLAIN, batches=1, workers="threads")
    assert finished
    assert all(finished)


def _bad(kind):
    good = _PLAIN[3]
    damaged = {"cut off": good[: good.size // 2], "no end": good[:-2], "empty": good[:0]}
    return [*_PLAIN[:3], damaged[kind], *_PLAIN[4:], damaged[kind]]


@pytest.mark.parametrize("kind", ["cut off", "no end", "empty"])
@pytest.mark.parametrize("chain", [_resized, _normalised])
def test_a_bad_file_is_named_and_costs_the_others_nothing(kind, chain, monkeypatch):
    calls, make = [], image_groups._kernels.resampling_loop

    def counted(images, *args, **keywords):
        calls.append(len(images))
        return make(images, *args, **keywords)

    monkeypatch.setattr(image_groups._kernels, "resampling_loop", counted)
    with pytest.raises(errors.BadSampleError, match="sample 3") as caught:
        _run(chain, _bad(kind), batches=1, workers="threads")
    assert "decoders.image" in str(caught.value)
    assert sum(calls) <= 2 * len(_PLAIN)  # two batches at most, none of them anew
    replaced = _run(chain, _bad(kind), policy="replace", batches=1)
    _assert_same(replaced, _run(chain, _bad(kind), policy="replace", batches=1, fuse=False))


@pytest.mark.parametrize("decode", ["image", "image_random_crop"])
@pytest.mark.parametrize("chain", [_resized, _normalised, CHAINS["twice"]])
def test_no_sample_of_a_chunk_is_good(decode, chain):
    """What comes behind a decoder has nothing to do then."""
    garbage = np.frombuffer(b"no image at all", np.uint8)
    for files in ([garbage], [garbage] * 3):
        with pytest.raises(errors.BadSampleError, match=rf"decoders\.{decode}.*at sample 0"):
            _run(chain, files, decode, batches=1)
