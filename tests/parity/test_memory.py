"""Settings of memory and statistics of it, as real DALI has them."""

from __future__ import annotations

import os
import subprocess
import sys

import numpy as np
import pytest

from headrace.tensors.buffer_sizes import BufferSettings
from tests.parity.outcomes import DALI, HEADRACE, Table, assert_same

_HOST, _BOTH = "DALI_HOST_BUFFER_GROWTH_FACTOR", "DALI_BUFFER_GROWTH_FACTOR"
_SHRINK = "DALI_HOST_BUFFER_SHRINK_THRESHOLD"
_PRINTS = """
from nvidia.dali import backend
print(backend.GetHostBufferGrowthFactor(), backend.GetDeviceBufferGrowthFactor())
print(backend.GetHostBufferShrinkThreshold())
"""


@pytest.mark.filterwarnings("ignore:The environment variable")
@pytest.mark.parametrize(
    "given",
    [
        {},
        {_BOTH: "2", _HOST: "3", _SHRINK: "0.25"},
        {_HOST: "0.5", _SHRINK: "-1"},
        {_BOTH: "9", _SHRINK: "2"},
    ],
    ids=str,
)
def test_environment(given, monkeypatch):
    for name in (_HOST, _BOTH, _SHRINK, "DALI_DEVICE_BUFFER_GROWTH_FACTOR"):
        monkeypatch.delenv(name, raising=False)
    for name, value in given.items():
        monkeypatch.setenv(name, value)
    settings = BufferSettings()
    ours = [settings.host_growth, settings.device_growth, settings.host_shrink]
    script = [sys.executable, "-W", "ignore", "-c", _PRINTS]
    printed = subprocess.run(script, env=os.environ, capture_output=True, text=True, timeout=100)
    assert ours == [float(text) for text in printed.stdout.split()]


def statistics(lib, make, iterations, **settings):
    """What the pipeline tells of its operators, without those that DALI adds to copy outputs."""
    pipe = lib.Pipeline(batch_size=4, num_threads=2, device_id=None, exec_dynamic=False, **settings)
    with pipe:
        pipe.set_outputs(*make(lib))
    pipe.build()
    before = pipe.executor_statistics()
    for _ in range(iterations):
        pipe.run()
    found = pipe.executor_statistics()
    return before, {name: of for name, of in found.items() if "MakeContiguous" not in name}


def graph(lib):
    """Operators with and without names, with one output and two; all of them become batches."""
    image = lib.fn.external_source(lambda: np.zeros((4, 100, 90, 3), np.uint8), name="src")
    resized = lib.fn.resize(image, size=(50, 40), name="rs")
    data, label = lib.fn.readers.file(files=[__file__] * 8, name="rdr")
    cast = lib.fn.cast(resized, dtype=lib.types.FLOAT)
    drawn = lib.fn.random.uniform(range=(0.0, 1.0), shape=(5,))
    return resized, cast, resized + 1, data, label, drawn


def test_statistics_have_dalis_keys_and_sizes():
    dalis = statistics(DALI, graph, 3, enable_memory_stats=True)
    ours = statistics(HEADRACE, graph, 3, enable_memory_stats=True)
    assert ours[0] == dalis[0] == {}
    assert ours[1].keys() == dalis[1].keys()
    for name, sizes in dalis[1].items():
        assert ours[1][name].keys() == sizes.keys()
        for key in ("real_memory_size", "max_real_memory_size"):
            assert ours[1][name][key] == sizes[key], name
        for key in ("reserved_memory_size", "max_reserved_memory_size"):
            for own, dali in zip(ours[1][name][key], sizes[key], strict=True):
                # Buffers are those of the pool: of its sizes, or up to half larger. Samples may lie
                # in buffers of their own beside that of the batch, if they came before it was made.
                assert dali <= own <= 2 * (1.65 * dali + 512), name


def test_statistics_are_of_the_largest_batch():
    def varying(lib):
        sizes = iter([[10, 20, 30, 40], [1000, 1, 1, 1], *[[10] * 4] * 8])
        data = lib.fn.external_source(
            lambda: [np.zeros(n, np.uint8) for n in next(sizes)], name="in"
        )
        return (lib.fn.cast(data, dtype=lib.types.INT32, name="out"),)

    found = [statistics(lib, varying, 5, enable_memory_stats=True)[1] for lib in (DALI, HEADRACE)]
    for name in ("CPU_in", "CPU_out"):
        for key in ("real_memory_size", "max_real_memory_size"):
            assert found[0][name][key] == found[1][name][key]


HINTS = Table(
    number=lambda lib: hinted(lib, 500),
    numbers=lambda lib: hinted(lib, [500]),
    none=lambda lib: hinted(lib, 0),
    negative=lambda lib: hinted(lib, -1),
    too_many=lambda lib: hinted(lib, [500, 600]),
    two_outputs=lambda lib: hinted(lib, [500, 600], outputs=2),
    one_for_two_outputs=lambda lib: hinted(lib, [500], outputs=2),
    three_for_two_outputs=lambda lib: hinted(lib, [1, 2, 3], outputs=2),
)


def hinted(lib, hint, outputs=1):
    """The outputs of an operator that was told how large they are; or how it is refused."""
    pipe = lib.Pipeline(batch_size=2, num_threads=1, device_id=None, bytes_per_sample=70)
    with pipe:
        data = lib.fn.external_source(lambda: np.arange(12, dtype=np.uint8).reshape(2, 6))
        if outputs == 1:
            pipe.set_outputs(lib.fn.copy(data, bytes_per_sample_hint=hint))
        else:
            files, labels = lib.fn.readers.file(files=[__file__] * 2, bytes_per_sample_hint=hint)
            pipe.set_outputs(files, labels)
    pipe.build()
    return [np.array(out.at(1)) for out in pipe.run()]


@pytest.mark.parametrize("name", HINTS)
def test_hints(name):
    assert_same(HINTS[name])
