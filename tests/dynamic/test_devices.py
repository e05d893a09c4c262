import copy
import pickle
import threading

import pytest

import headrace.experimental.dynamic as ndd


def test_the_cpu():
    cpu = ndd.Device("cpu")
    assert (cpu.device_type, cpu.device_id, str(cpu)) == ("cpu", None, "cpu")
    assert cpu == ndd.Device.CPU
    assert hash(cpu) == hash(ndd.Device.CPU)
    assert repr(cpu) == "Device(device_type='cpu')"
    assert pickle.loads(pickle.dumps(cpu)) == cpu
    assert copy.deepcopy(cpu) == cpu


def test_a_device_differs_from_its_name():
    assert ndd.Device.CPU != "cpu"


@pytest.mark.parametrize(
    ("arguments", "error"),
    [
        (("tpu",), ValueError),
        (("GPU",), ValueError),
        (("cpu:0",), ValueError),
        (("cpu", 0), ValueError),
        (("gpu:1", 1), ValueError),
        (("gpu:x",), ValueError),
        (("gpu:",), ValueError),
        (("gpu", -1), ValueError),
        (("gpu", "1"), TypeError),
        ((5,), TypeError),
    ],
)
def test_what_is_no_device(arguments, error):
    with pytest.raises(error):
        ndd.Device(*arguments)


def test_device_converts():
    torch = pytest.importorskip("torch")
    assert ndd.device(None) is None
    assert ndd.device("cpu") == ndd.Device.CPU
    assert ndd.device(ndd.Device.CPU) is ndd.Device.CPU
    assert ndd.device(torch.device("cpu")) == ndd.Device.CPU
    with pytest.raises(TypeError):
        ndd.device(5)
    with pytest.raises(ValueError):
        ndd.device(ndd.Device.CPU, 1)
    with pytest.raises(ValueError):
        ndd.device(torch.device("cpu"), 1)


def test_dlpack_names_devices():
    assert ndd.Device.type_from_dlpack(1) == "cpu"
    assert ndd.Device.type_from_dlpack(2) == "gpu"
    with pytest.raises(ValueError):
        ndd.Device.type_from_dlpack(3)
    assert ndd.Device.from_dlpack((1, 0)) == ndd.Device.CPU
    with pytest.raises(TypeError):
        ndd.Device.from_dlpack(1)


def test_the_current_device_is_the_threads_own():
    seen = []

    def look():
        seen.append(ndd.Device.current())

    with ndd.Device("cpu") as entered:
        assert entered == ndd.Device.CPU
        assert ndd.Device.current() is entered
        thread = threading.Thread(target=look)
        thread.start()
        thread.join()
    assert seen[0] == ndd.Device.current()
