"""Decoded images that stay on the GPU."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn, types
from headrace.errors import ArgumentValueError
from tests.support.encoded_images import jpegs, pngs

NAMES = ("jpeg-4:2:0", "jpeg-exif6", "jpeg-200x300", "jpeg-gray", "jpeg-1x1")
IMAGE_BYTES = {"jpeg-200x300": 200 * 300 * 3, "jpeg-1x1": 3}


@pytest.fixture
def files(tmp_path):
    found = {name: jpegs()[name] for name in NAMES}
    found["png-rgb16"] = pngs()["png-rgb16"]
    paths = []
    for number, data in enumerate(found.values()):
        path = tmp_path / f"{number}.bin"
        path.write_bytes(data)
        paths.append(str(path))
    return paths


def decoding(files, batch_size=6, **args):
    pipe = Pipeline(batch_size, num_threads=2, device_id=0, prefetch_queue_depth=1)
    with pipe:
        encoded, _ = fn.readers.file(files=files, name="reader")
        pipe.set_outputs(fn.decoders.image(encoded, device="mixed", **args))
    return pipe


def epochs(files, count, **args):
    """What comes out of some epochs, and how many images were decoded for each."""
    from headrace.kernels.gpu.decode import batch

    decoded = []
    pipe = decoding(files, **args)
    original = batch.begin_decoding
    outputs = []
    with pytest.MonkeyPatch.context() as patch:

        def counting(queue, samples, *rest):
            decoded.append(len(samples))
            return original(queue, samples, *rest)

        patch.setattr(batch, "begin_decoding", counting)
        for _ in range(count):
            (images,) = pipe.run()
            host = images.as_cpu()
            outputs.append([host.at(i) for i in range(len(host))])
    return outputs, decoded[:count]


def check(outputs):
    for epoch in outputs[1:]:
        for one, other in zip(epoch, outputs[0], strict=True):
            np.testing.assert_array_equal(one, other)


@pytest.mark.parametrize("at_once", [True, False])
def test_later_epochs_decode_nothing(files, at_once):
    outputs, decoded = epochs(files, 3, cache_size=1, cache_batch_copy=at_once)
    assert decoded == [6, 0, 0]
    check(outputs)


def test_small_images_are_not_worth_it(files):
    outputs, decoded = epochs(files, 3, cache_size=1, cache_threshold=IMAGE_BYTES["jpeg-200x300"])
    assert decoded == [6, 5, 5]
    check(outputs)


def test_the_largest_are_found_in_the_first_epoch(files):
    outputs, decoded = epochs(files, 4, cache_size=1, cache_type="largest")
    assert decoded == [6, 6, 0, 0]
    check(outputs)


def test_what_is_converted_is_cached_so(files):
    outputs, decoded = epochs(files, 2, cache_size=4, dtype=types.FLOAT, output_type=types.YCbCr)
    assert decoded == [6, 0]
    assert outputs[0][0].dtype == np.float32
    check(outputs)


def test_a_full_cache_and_what_is_said_of_it(files, capsys):
    # 180 kB of float32 pixels four times over, and the rest of the files do not fit into 1 MB.
    many = [files[2]] * 1 + files
    many[1:1] = [files[2].replace("2.bin", f"copy{i}.bin") for i in range(3)]
    for path in many[1:4]:
        with open(files[2], "rb") as source, open(path, "wb") as target:
            target.write(source.read())
    args = {"dtype": types.FLOAT, "cache_size": 1, "batch_size": len(many), "cache_debug": True}
    outputs, decoded = epochs(many, 3, **args)
    assert decoded[0] == len(many)
    assert 0 < decoded[1] == decoded[2] < len(many)
    check(outputs)
    said = capsys.readouterr().err
    assert said.count("is full") == 1
    assert said.count("is used for the first time") == 1


def test_a_policy_that_does_not_exist():
    with pytest.raises(ArgumentValueError, match="cache_type"):
        decoding([], cache_size=1, cache_type="smallest").build()
