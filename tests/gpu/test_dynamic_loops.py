"""Loops of dynamic mode that go to a GPU: readers, random numbers, captured loops."""

from __future__ import annotations

import numpy as np
import pytest

import headrace.experimental.dynamic as ndd

SIZE = 3


@pytest.fixture(autouse=True)
def own_context(gpu_runtime):
    with ndd.EvalContext(num_threads=2, device_id=0):
        yield


@pytest.fixture
def root(tmp_path):
    (tmp_path / "a").mkdir()
    for k in range(17):
        (tmp_path / "a" / f"{k:02d}.jpg").write_bytes(bytes(range(k, k + 6)))
    return str(tmp_path)


def there_and_back(data, rng):
    x = data.gpu() * 2 + 1
    return ndd.cast(x.slice[1:], dtype=ndd.float32).cpu()


def gains(data, rng):
    gain = ndd.random.uniform(range=(0.5, 2), batch_size=SIZE, rng=rng)
    return (data.gpu() * gain.gpu() + 1).cpu()


def noise(data, rng):
    drawn = ndd.random.normal(batch_size=SIZE, shape=[6], device="gpu", rng=rng)
    return (data.gpu() + drawn).cpu()


def looks_in_between(data, rng):
    x = data.gpu() + 1
    y = x * 3
    np.testing.assert_array_equal(
        np.stack([np.asarray(s) for s in x.cpu()]) * 3, np.stack([np.asarray(s) for s in y.cpu()])
    )
    return y.cpu()


@pytest.mark.sweep
@pytest.mark.parametrize("mode", list(ndd.EvalMode), ids=lambda m: m.name)
@pytest.mark.parametrize("body", [there_and_back, gains, noise, looks_in_between])
def test_captured_loops_give_the_same(root, body, mode):
    def run(capture):
        reader, rng, found = ndd.readers.File(file_root=root), ndd.random.RNG(3), []
        for _ in range(2):
            for data, _ in reader.next_epoch(batch_size=SIZE, capture=capture):
                found += [np.array(s) for s in body(data, rng)]
        return found

    with mode:
        expected, found = run(False), run(True)
    assert len(found) == len(expected) == 36
    for one, other in zip(expected, found, strict=True):
        np.testing.assert_array_equal(other, one)


def test_sources_on_the_gpu():
    source = ndd.ExternalSource([np.arange(4.0), np.arange(3.0)], device="gpu")
    for count in (4, 3):
        data = source()
        assert data.device.device_type == "gpu"
        np.testing.assert_array_equal(np.asarray(data.cpu()), np.arange(count))


def test_readers_read_on_the_cpu(root):
    with pytest.raises(ValueError, match="gpu"):
        ndd.readers.File(file_root=root, device="gpu")


@pytest.mark.parametrize("name", ["uniform", "normal", "coin_flip"])
def test_random_numbers_are_those_of_the_cpu(name):
    function = getattr(ndd.random, name)
    found = []
    for device in ("cpu", "gpu"):
        rng = ndd.random.RNG(1)
        batches = [function(batch_size=SIZE, shape=[5], device=device, rng=rng) for _ in range(2)]
        found.append([np.asarray(s) for b in batches for s in b.cpu()])
        assert str(rng.state).endswith(":0000000000000003_2")
    for one, other in zip(*found, strict=True):
        np.testing.assert_allclose(other, one, rtol=1e-6)
