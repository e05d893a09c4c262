"""nvImageCodec through its C interface, beside its own Python binding."""

from __future__ import annotations

import contextlib
import re
import shutil
import subprocess
import threading
from concurrent.futures import ThreadPoolExecutor
from functools import cache

import numpy as np
import pytest

from headrace.errors import BadSampleError
from headrace.kernels.cpu.decode import nvimagecodec, nvimagecodec_library
from headrace.kernels.cpu.decode.header import read_header
from headrace.kernels.gpu.decode.nvimagecodec_module import decode_params, module
from tests.support.encoded_images import everything

try:
    module()
except ImportError:
    pytest.skip("nvImageCodec is not installed", allow_module_level=True)

RECORDS = {
    "nvimgcodecImageInfo_t": nvimagecodec_library.IMAGE_INFO,
    "nvimgcodecCodeStreamView_t": nvimagecodec_library.CODE_STREAM_VIEW,
    "nvimgcodecDecodeParams_t": nvimagecodec_library.DECODE_PARAMS,
    "nvimgcodecProperties_t": nvimagecodec_library._PROPERTIES,
    "nvimgcodecInstanceCreateInfo_t": nvimagecodec_library._INSTANCE_CREATE_INFO,
    "nvimgcodecExtensionDesc_t": nvimagecodec_library._EXTENSION_DESC,
    "nvimgcodecBackend_t": nvimagecodec_library._BACKEND,
    "nvimgcodecExecutionParams_t": nvimagecodec_library._EXECUTION_PARAMS,
}


@pytest.mark.skipif(shutil.which("cc") is None, reason="needs a C compiler")
def test_records_are_those_of_the_header(tmp_path):
    header = (nvimagecodec_library._folder() / "include" / "nvimgcodec.h").read_text()
    sizes, single = [], []
    for name, record in RECORDS.items():
        sizes.append((f"sizeof({name})", record.itemsize))
        body = header[: header.index(f"}} {name};")].rpartition("typedef struct")[2]
        for field, (_, offset, *_) in record.fields.items():
            known = {"plane": "plane_info"}.get(field, field)
            if re.search(rf"\b{known}(\[\w+\])?;", body):  # else it stands for several
                single.append((name, known, offset))
    program = "#include <stdio.h>\n#include <stddef.h>\ntypedef void* cudaStream_t;\n"
    program += re.sub(r"#include .*(cuda|version).*", "", header) + "\nint main() {\n"
    for text, _ in sizes:
        program += f'printf("%zu\\n", {text});\n'
    for name, field, _ in single:
        program += f'printf("%zu\\n", offsetof({name}, {field}));\n'
    (tmp_path / "sizes.c").write_text(program + "}\n")
    subprocess.run(["cc", "-o", tmp_path / "sizes", tmp_path / "sizes.c"], check=True)
    done = subprocess.run([tmp_path / "sizes"], check=True, capture_output=True, text=True)
    found = [int(line) for line in done.stdout.split()]
    assert found == [size for _, size in sizes] + [offset for *_, offset in single]
    assert len(single) > 30


def by_binding(data, shape, dtype, color, region, *, fast_idct=False):
    """The same by the Python binding; `None` if it refuses."""
    nv = module()
    decoder = nv.Decoder(
        device_id=nv.NVIMGCODEC_DEVICE_CPU_ONLY,
        backends=[nv.Backend(nv.BackendKind.CPU_ONLY)],
        max_num_cpu_threads=1,
        options=":fancy_upsampling=1 :fast_idct=1" if fast_idct else "",
    )
    out = np.empty(shape, dtype)
    try:
        stream = nv.CodeStream(data)
        if region is not None:
            stream = stream.get_sub_code_stream(region=nv.Region(*region))
        image = decoder.decode(stream, image=nv.as_image(out), params=decode_params(color))
    except (RuntimeError, ValueError):
        return None
    return out if image is not None and image.shape == out.shape else None


IMAGES = sorted(name for name in everything() if name.startswith(("jpeg", "tiff")))


@pytest.mark.parametrize("name", IMAGES)
def test_the_same_pixels_as_the_binding_gives(name):
    rng = np.random.default_rng(IMAGES.index(name))
    data = np.frombuffer(everything()[name], np.uint8)
    for case in range(6):
        damaged = data.copy()
        if case > 3:
            places = rng.integers(len(data) // 2, len(data), 2)
            damaged[places] = rng.integers(0, 256, 2)
        try:
            header = read_header(damaged.data)
        except BadSampleError:
            continue
        if header.dtype is None or header.unsupported:
            continue
        native = "NATIVE" if header.channels > 3 and header.codec == "tiff" else "RGB"
        color = ("RGB", "GRAY", "BGR", native)[case % 4]
        region, (height, width) = None, (header.height, header.width)
        if case % 2:
            y, x = rng.integers(0, height), rng.integers(0, width)
            bottom, right = rng.integers(y + 1, height + 1), rng.integers(x + 1, width + 1)
            region, height, width = (*map(int, (y, x, bottom, right)),), bottom - y, right - x
        channels = {"GRAY": 1, "NATIVE": header.channels}.get(color, 3)
        fast = case == 2
        expected = by_binding(
            damaged, (height, width, channels), header.dtype, color, region, fast_idct=fast
        )
        out = np.empty((height, width, channels), header.dtype)
        good = nvimagecodec.decode_into(out, damaged, header, color, fast_idct=fast, region=region)
        assert good == (expected is not None)
        if good:
            np.testing.assert_array_equal(out, expected)


def test_another_image_than_the_header_says_is_refused():
    data = np.frombuffer(everything()["jpeg-200x300"], np.uint8)
    header = read_header(data.data)._replace(width=299)
    out = np.zeros((200, 299, 3), np.uint8)
    assert not nvimagecodec.decode_into(out, data, header, "RGB", fast_idct=False, region=None)
    assert not out.any()


def test_another_version_is_refused(monkeypatch):
    monkeypatch.setattr(nvimagecodec_library, "_VERSION", 8)
    with pytest.raises(ImportError, match=r"version 0\.8 is needed, and this is 0\.9"):
        nvimagecodec_library.Library()


def test_decoders_go_with_their_thread(monkeypatch):
    freed = []
    destroy = nvimagecodec_library.Library.destroy_decoder
    monkeypatch.setattr(
        nvimagecodec_library.Library,
        "destroy_decoder",
        lambda self, handle: (freed.append(handle), destroy(self, handle)),
    )
    data = np.frombuffer(everything()["jpeg-200x300"], np.uint8)
    header = read_header(data.data)

    def work():
        out = np.empty((200, 300, 3), np.uint8)
        assert nvimagecodec.decode_into(out, data, header, "RGB", fast_idct=False, region=None)

    thread = threading.Thread(target=work)
    thread.start()
    thread.join()
    assert len(freed) == 1


def test_threads_that_ask_at_once_get_one_library(monkeypatch):
    made = []
    both_ask = threading.Barrier(2)

    def slow():
        made.append(object())
        with contextlib.suppress(threading.BrokenBarrierError):
            both_ask.wait(0.2)  # another thread that gets here comes in time
        return made[-1]

    monkeypatch.setattr(nvimagecodec_library, "Library", slow)
    monkeypatch.setattr(
        nvimagecodec_library, "_only", cache(nvimagecodec_library._only.__wrapped__)
    )
    ask = cache(nvimagecodec_library.library.__wrapped__)
    with ThreadPoolExecutor(2) as pool:
        found = list(pool.map(lambda _: ask(), range(2)))
    assert len(made) == 1
    assert found[0] is found[1] is made[0]
