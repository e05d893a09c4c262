"""What the GPU's decoders do where all goes wrong; on the emulated GPU, with decoders that obey."""

from __future__ import annotations

import threading
from typing import Any

import numpy as np
import pytest

from headrace.kernels.cpu.decode.header import read_header
from headrace.kernels.cpu.decode.pixels import PixelFormat
from headrace.kernels.gpu.decode import nvimagecodec
from headrace.kernels.gpu.decode.decoders import decoders_of, host_threads
from headrace.kernels.gpu.decode.host import Sample
from headrace.kernels.gpu.decode.nvimagecodec import DeviceDecoder
from headrace.kernels.gpu.decode.options import DecoderOptions
from tests.support.encoded_images import jpegs
from tests.support.gpu.decoding import decode_batch
from tests.support.gpu.session import gpu_session

RGB = PixelFormat("RGB", np.dtype(np.uint8))
NAMES = ("jpeg-4:2:0", "jpeg-gray", "jpeg-exif6", "jpeg-200x300")


@pytest.fixture(autouse=True)
def _emulated(emulated_gpu, monkeypatch):
    monkeypatch.setattr(nvimagecodec, "_warned", set())


def samples() -> list[Sample]:
    found = []
    for i, name in enumerate(NAMES):
        data = np.frombuffer(jpegs()[name], np.uint8)
        header = read_header(data.data)
        found.append(Sample(i, data, header, None, RGB.shape(header)))
    return found


def decoded(threads: int = 1) -> list[np.ndarray]:
    with gpu_session() as s:
        batch, failures = decode_batch(
            s.queue, samples(), len(NAMES), RGB, DecoderOptions(), threads
        )
        assert not failures
        return s.download(batch)


class Obedient:
    """A decoder of nvImageCodec's that does as the test says."""

    def __init__(self, real: Any, calls: list[int], behave: Any) -> None:
        self._real = real
        self._calls = calls
        self._behave = behave

    def decode(self, streams: list[Any], *, images: list[Any], **options: Any) -> list[Any]:
        self._calls.append(len(streams))
        return self._behave(self._real.decode(streams, images=images, **options))


@pytest.fixture
def behaving(monkeypatch):
    """Let every decoder made from now on pass its results through a function."""

    def install(behave: Any) -> list[int]:
        calls: list[int] = []
        made = DeviceDecoder.__init__

        def make(self, *args):
            made(self, *args)
            self._decoder = Obedient(self._decoder, calls, behave)

        monkeypatch.setattr(DeviceDecoder, "__init__", make)
        return calls

    return install


def check(images: list[np.ndarray]) -> None:
    from tests.support.run_operator import run_operator

    for name, image in zip(NAMES, images, strict=True):
        want = run_operator("decoders.image", np.frombuffer(jpegs()[name], np.uint8))
        np.testing.assert_array_equal(image, want)


def test_a_batch_is_decoded_by_one_call(behaving):
    calls = behaving(lambda images: images)
    check(decoded())
    assert calls == [len(NAMES)]


@pytest.mark.parametrize("threads", [0, 1, 2])
def test_what_the_device_refuses_is_decoded_on_the_cpu(behaving, threads):
    behaving(lambda images: [None, images[1], None, images[3]])
    check(decoded(threads))


def test_a_device_that_refuses_everything_is_reported_once(behaving):
    behaving(lambda images: [None] * len(images))
    with pytest.warns(RuntimeWarning, match=r"none of the first JPEG images.*nvidia-nvjpeg"):
        check(decoded())
    check(decoded())


def test_an_image_of_another_shape_is_not_believed(behaving):
    class Other:
        shape = (1, 2, 3)

    behaving(lambda images: [Other(), *images[1:]])
    check(decoded())


def test_one_image_that_fails_all_is_found(behaving):
    def behave(images):
        if len(images) > 1:
            raise ValueError("Existing buffer is too small to fit new image")
        return images

    calls = behaving(behave)
    check(decoded())
    assert calls == [4, 1, 1, 1, 1]


def test_no_decoder_at_all(monkeypatch):
    def refuse(self, *args):
        raise RuntimeError("Could not create decoder. Code: 7")

    monkeypatch.setattr(DeviceDecoder, "__init__", refuse)
    with pytest.warns(RuntimeWarning, match=r"no decoder for GPU 0 .*Code: 7.*headrace\[cuda13\]"):
        check(decoded())
    check(decoded())


def test_each_thread_has_its_own_decoder(gpu_runtime):
    found = []

    def work():
        first = decoders_of(gpu_runtime, DecoderOptions(), 1)
        assert decoders_of(gpu_runtime, DecoderOptions(), 1) is first
        assert decoders_of(gpu_runtime, DecoderOptions(fancy_upsampling=True), 1) is not first
        found.append((first, host_threads(gpu_runtime, 2)))
        assert host_threads(gpu_runtime, 2) is found[-1][1]

    threads = [threading.Thread(target=work) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(decoder) for decoder, _ in found}) == 2
    assert len({id(pool) for _, pool in found}) == 2
    assert host_threads(gpu_runtime, 1) is None


def test_options_in_the_words_of_nvimagecodec():
    text = DecoderOptions(
        fancy_upsampling=True,
        hybrid_huffman_threshold=7,
        device_padding_bytes=1,
        host_padding_bytes=2,
        device_padding_jpeg2k_bytes=3,
        host_padding_jpeg2k_bytes=4,
    ).text()
    assert set(text.split(" ")) == {
        "nvjpeg_cuda_decoder:fancy_upsampling=1",
        "nvjpeg_cuda_decoder:hybrid_huffman_threshold=7",
        "nvjpeg_cuda_decoder:device_memory_padding=1",
        "nvjpeg_cuda_decoder:host_memory_padding=2",
        "nvjpeg2k_cuda_decoder:device_memory_padding=3",
        "nvjpeg2k_cuda_decoder:host_memory_padding=4",
    }


def test_memory_is_taken_as_it_is_described():
    memory = nvimagecodec.DecoderMemory(4096, (3, 5, 3), "|u1", 77)
    assert memory.__cuda_array_interface__ == {
        "data": (4096, False),
        "shape": (3, 5, 3),
        "typestr": "|u1",
        "version": 3,
        "stream": 77,
    }
