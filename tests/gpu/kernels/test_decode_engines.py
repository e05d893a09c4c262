"""The JPEG engines, as an emulated nvJPEG has them."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import types
from headrace.errors import BadSampleError, BadSamplesError
from headrace.kernels.cpu.decode.header import read_header
from headrace.kernels.gpu.decode import decoders, nvjpeg
from headrace.kernels.gpu.decode.decoders import Decoders, decoders_of
from headrace.kernels.gpu.decode.engines import JpegEngines
from headrace.kernels.gpu.decode.host import Sample
from headrace.kernels.gpu.decode.nvimagecodec import DeviceDecoder
from headrace.kernels.gpu.decode.options import DecoderOptions
from tests.support.encoded_images import jpegs
from tests.support.gpu.decoding import check_like_cpu, encoded, without
from tests.support.gpu.nvjpeg import EmulatedNvJpeg
from tests.support.gpu.run_operator import run_cpu_operator_on_batch, run_gpu_operator

OTHERS = ("progressive", "411", "cmyk", "ycck", "jpeg-rgb")
"""What the engines do not know."""
NARROW = ("1x1", "17x1")


@pytest.fixture(autouse=True)
def library(emulated_gpu, monkeypatch):
    """An nvJPEG with seven engines."""
    found = EmulatedNvJpeg()
    monkeypatch.setattr(nvjpeg, "functions", lambda: found)
    monkeypatch.setattr(decoders, "make_engines", JpegEngines)
    return found


def decoded(library) -> list[int]:
    """How many images each call was to decode."""
    return [len(batch) for batch in library.batches]


def taken() -> dict[str, bytes]:
    return without(jpegs(), OTHERS)


def test_what_the_engines_take_is_decoded_at_once(library):
    check_like_cpu("decoders.image", jpegs(), jpeg_fancy_upsampling=False)
    assert decoded(library) == [len(taken())]
    assert library.flags == [0]


def test_nvjpeg_is_asked_once_for_each_kind_that_it_knows(library, gpu_runtime):
    engines = JpegEngines(gpu_runtime, DecoderOptions(), 4)
    for name, again in (("jpeg-4:2:0", 0), ("jpeg-4:4:4", 0), ("jpeg-411", 2)):
        data = np.frombuffer(jpegs()[name], np.uint8)
        before = library.asked
        answers = {engines.takes(data, read_header(data.data)) for _ in range(3)}
        assert answers == {not again}
        assert library.asked == before + 1 + again


def test_nvjpeg_is_asked_about_each_kind_of_a_batch(library, monkeypatch):
    images = {k: v for k, v in taken().items() if "exif" not in k}
    original = EmulatedNvJpeg.nvjpegDecodeBatchedSupported

    def choosy(self, handle, stream, answer):
        status = original(self, handle, stream, answer)
        answer._obj.value |= self._parsed[stream.value].size == len(images["jpeg-200x300"])
        return status

    monkeypatch.setattr(EmulatedNvJpeg, "nvjpegDecodeBatchedSupported", choosy)
    check_like_cpu("decoders.image", images, jpeg_fancy_upsampling=False)
    asked = library.asked
    check_like_cpu("decoders.image", images, jpeg_fancy_upsampling=False)
    assert decoded(library) == [len(images) - 1] * 2
    assert library.asked == asked + 2  # about what it does not know, by either way to it


def test_narrow_images_are_left_alone_where_chroma_is_interpolated(library):
    check_like_cpu("decoders.image", jpegs(), jpeg_fancy_upsampling=True)
    assert decoded(library) == [len(taken()) - len(NARROW)]
    assert library.flags == [32]


@pytest.mark.parametrize(
    "color", [types.BGR, types.GRAY, types.YCbCr, types.ANY_DATA], ids=lambda c: c.name
)
def test_colors(library, color):
    images = without(jpegs(), ("cmyk", "ycck"))
    check_like_cpu(
        "decoders.image", images, output_type=color, jpeg_fancy_upsampling=False, dtype=types.FLOAT,
        ulps=1,
    )  # fmt: skip
    assert sum(decoded(library)) == len(taken())


@pytest.mark.parametrize("interpolated", [False, True])
def test_windows(library, interpolated):
    images = without(jpegs(), ("1x1", "1x17", "17x1", "15x33", "16x16"))
    for color, dtype in ((types.RGB, types.UINT8), (types.YCbCr, types.FLOAT)):
        check_like_cpu(
            "decoders.image_crop",
            images,
            crop=(17, 33),
            crop_pos_x=0.3,
            crop_pos_y=0.9,
            output_type=color,
            dtype=dtype,
            ulps=1,
            jpeg_fancy_upsampling=interpolated,
        )
    assert decoded(library) == [len(without(images, OTHERS))] * 2
    assert bool(library.regions) is not interpolated


def test_regions_and_whole_images_in_one_batch(library):
    rows = encoded({name: jpegs()["jpeg-4:2:0"] for name in "abcd"})
    starts = [np.array([2, y], np.int32) for y in (0, 3, 0, 5)]
    ends = [np.array([53 - y, 37 - y], np.int32) for y in (0, 4, 0, 6)]
    starts[0][:] = starts[2][:] = 0
    args = {"start": starts, "end": ends}
    want = run_cpu_operator_on_batch("decoders.image_slice", rows, **args)
    for _ in range(2):
        got = run_gpu_operator("decoders.image_slice", rows, **args)
        for ours, theirs in zip(got, want, strict=True):
            np.testing.assert_array_equal(ours, theirs)
    whole = (0, 0, -1, -1)
    assert library.regions == [whole, (2, 3, 47, 30), whole, (2, 5, 45, 26)] * 2


@pytest.mark.parametrize(
    ("share", "count"), [(0.0, 0), (0.25, 2), (0.5, 4), (1.0, 8), (3.0, 8), (-1.0, 0)]
)
def test_shares(library, share, count):
    images = {f"jpeg-{i}": jpegs()["jpeg-4:2:0"] for i in range(8)}
    for _ in range(2):
        check_like_cpu("decoders.image", images, hw_decoder_load=share)
    assert decoded(library) == [count] * (2 if count else 0)


def test_a_share_is_spread_evenly_and_the_same_in_every_batch(gpu_runtime):
    data = np.frombuffer(jpegs()["jpeg-4:2:0"], np.uint8)
    sample = Sample(0, data, read_header(data.data), None, (37, 53, 3))
    chosen = Decoders(gpu_runtime, DecoderOptions(hardware_load=0.5), 1)
    for _ in range(2):
        chosen.begin(5)
        kinds = [type(chosen.choose(sample, "RGB")) for _ in range(5)]
        assert kinds == [DeviceDecoder, JpegEngines] * 2 + [DeviceDecoder]


def test_one_thread_decodes_for_all(library, gpu_runtime):
    check_like_cpu("decoders.image", jpegs(), hw_decoder_load=0.5)
    check_like_cpu("decoders.image", taken(), hw_decoder_load=1.0, jpeg_fancy_upsampling=False)
    assert library.threads == ["headrace-engines"] * 2


def test_batches_that_follow_each_other_have_states_of_their_own(library):
    for _ in range(4):
        check_like_cpu("decoders.image", taken(), jpeg_fancy_upsampling=False)
    first, second, *more = library.states
    assert first != second
    assert more == [first, second]


def test_one_image_that_fails_all_is_found(library):
    names = ["jpeg-4:2:0", "jpeg-200x300", "jpeg-4:4:4", "jpeg-4:2:2", "jpeg-gray"]
    images = {name: jpegs()[name] for name in names}
    library.broken = (len(images["jpeg-200x300"]),)
    check_like_cpu("decoders.image", images)
    assert decoded(library) == [5, 2, 1, 1, 3]


def test_a_damaged_image_is_reported_as_on_the_cpu(library):
    cut = jpegs()["jpeg-200x300"][:300] + b"\xff\xd9"
    library.broken = (len(cut),)
    damaged = [np.frombuffer(cut, np.uint8)]
    with pytest.raises(BadSampleError) as said:
        run_cpu_operator_on_batch("decoders.image", damaged)
    with pytest.raises(BadSamplesError) as caught:
        run_gpu_operator("decoders.image", [*encoded(jpegs())[:4], *damaged])
    failures = caught.value.failures
    assert {i: str(e.__cause__) for i, e in failures.items()} == {4: str(said.value)}


def test_everything_is_given_back(library, gpu_runtime):
    engines = JpegEngines(gpu_runtime, DecoderOptions(), 4)
    assert sorted(library.alive.values()) == ["handle", "state", "state", "stream"]
    del engines
    assert not library.alive


def test_a_gpu_without_engines(gpu_runtime, monkeypatch):
    library = EmulatedNvJpeg(engines=0)
    monkeypatch.setattr(nvjpeg, "functions", lambda: library)
    with pytest.raises(nvjpeg.NvJpegError, match="error 7"):
        JpegEngines(gpu_runtime, DecoderOptions(), 4)
    assert not library.alive


def test_no_library(gpu_runtime, monkeypatch):
    def missing():
        raise RuntimeError("no libnvjpeg")

    monkeypatch.undo()
    monkeypatch.setattr(nvjpeg, "functions", missing)
    monkeypatch.setattr(gpu_runtime, "xp", object())
    assert decoders.make_engines(gpu_runtime, DecoderOptions(), 4) is None


def test_memory_of_the_host_is_not_for_engines(gpu_runtime, monkeypatch):
    monkeypatch.undo()
    assert decoders.make_engines(gpu_runtime, DecoderOptions(), 4) is None


def test_decoders_are_kept(gpu_runtime):
    found = decoders_of(gpu_runtime, DecoderOptions(), 1)
    assert decoders_of(gpu_runtime, DecoderOptions(), 1) is found
    assert decoders_of(gpu_runtime, DecoderOptions(fancy_upsampling=True), 1) is not found
