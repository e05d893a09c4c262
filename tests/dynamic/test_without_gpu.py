"""Programs of dynamic mode that were written for a GPU, on the CPU."""

from __future__ import annotations

import re

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd
from headrace import errors
from headrace.operators import BatchOperator, Input, operator
from tests.support.encoded_images import png

IMAGE = np.arange(24 * 20 * 3, dtype=np.uint8).reshape(24, 20, 3)


@operator("testing.dynamic_gpu_alone", inputs=Input(), devices=("gpu",))
class GpuAlone(BatchOperator):
    """Has no code for the CPU."""

    def gpu(self, c, x):
        """Not called here."""
        raise AssertionError


def test_calls(gpu_is_off, recwarn):
    device = ndd.Device("gpu:1")
    assert device == ndd.Device.CPU == ndd.Device("cuda", 3) == ndd.device("gpu")
    encoded = ndd.as_tensor(np.frombuffer(png(IMAGE, 8, 2), np.uint8))
    image = ndd.decoders.image(encoded, device="gpu")
    np.testing.assert_array_equal(np.asarray(image.cpu()), IMAGE)
    with ndd.EvalContext(device_id=2, cuda_stream=1234) as context:
        assert context.device_id is None
        flipped = ndd.flip(image.gpu(1), device="gpu:1", vertical=1, horizontal=0)
    np.testing.assert_array_equal(np.asarray(flipped), IMAGE[::-1])
    batch = ndd.batch([IMAGE, IMAGE[:5]], device="gpu").to_device("gpu:2")
    assert batch.device == ndd.Device.CPU
    assert (batch.gpu() + 1).cpu().shape == [(24, 20, 3), (5, 20, 3)]
    with ndd.Device("gpu:1"):
        drawn = ndd.random.uniform(shape=[3], device="gpu", rng=ndd.random.RNG(4))
        assert ndd.stream(stream=5) is ndd.stream(device_id=1) is None
        ndd.set_current_stream(7)
        ndd.set_default_stream(7)
        assert ndd.get_default_stream() is None
    (warned,) = recwarn
    assert "HEADRACE_GPU is 'never'" in str(warned.message)
    assert warned.filename == __file__
    again = ndd.random.uniform(shape=[3], rng=ndd.random.RNG(4))
    np.testing.assert_array_equal(np.asarray(drawn), np.asarray(again))


@pytest.mark.filterwarnings("ignore:.*asks for a GPU:UserWarning")
def test_what_needs_a_gpu_says_so(gpu_is_off):
    with pytest.raises(errors.HeadraceError, match=r"testing.dynamic_gpu_alone.*(GPU|gpu)"):
        ndd.testing.dynamic_gpu_alone(IMAGE, device="gpu")
    with pytest.raises(errors.GpuNotAvailableError, match="HEADRACE_GPU is 'never'"):
        ndd.Stream()


def test_all_methods_of_what_would_be_on_a_gpu(gpu_is_off, recwarn):
    """Each gives what it gives of data on the CPU."""
    numbers = np.arange(6, dtype=np.int32).reshape(2, 3)
    given = {"to_device": {"device": "gpu:1"}}
    only_gpu = {"__cuda_array_interface__"}
    for make in (
        lambda device: ndd.as_tensor(numbers, device=device),
        lambda device: ndd.batch([numbers, numbers + 1], device=device),
        lambda device: ndd.batch([numbers, numbers + 1], device=device).tensors[1],
        lambda device: ndd.as_tensor(np.int32(3), device=device),
    ):
        for name in dir(type(make("cpu"))):
            if name in only_gpu or (name[0] == "_" and name not in ("__array__", "__dlpack__")):
                continue
            here, there = (_called(make(device), name, given) for device in ("cpu", "gpu"))
            assert here == there, name


def _called(data, name, given):
    found = getattr(data, name)
    try:
        found = found(**given.get(name, {})) if callable(found) else found
    except (TypeError, ValueError) as error:  # an argument is missing, or the size is wrong
        return str(error)
    if isinstance(found, (ndd.Tensor, ndd.Batch)):
        return str(found)
    return re.sub(" at 0x.*|0x[0-9a-f]+", "", repr(found))
