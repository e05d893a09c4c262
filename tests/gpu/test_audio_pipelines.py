"""Audio in pipelines: decoded on the CPU, everything else on the GPU, with the CPU's numbers."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import fn, pipeline_def
from tests.support.speech import CLIPS, encoded


def chain(device, **settings):
    files = [encoded(name) for name in CLIPS]

    @pipeline_def(batch_size=4, num_threads=2, device_id=0, seed=5, **settings)
    def pipeline():
        data = fn.external_source(source=lambda: files)
        audio, _ = fn.decoders.audio(data, downmix=True, sample_rate=6000)
        if device == "gpu":
            audio = audio.gpu()
        begin, length = fn.nonsilent_region(
            audio, cutoff_db=-40, window_length=256, reset_interval=1024
        )
        part = fn.slice(
            audio,
            rel_start=fn.random.uniform(range=[0, 0.5], shape=[1]),
            shape=[2000],
            axes=[0],
            out_of_bounds_policy="pad",
        )
        changed = fn.audio_resample(part, scale=fn.random.uniform(range=[0.8, 1.2]), quality=20)
        return begin, length, fn.preemphasis_filter(changed), part

    pipe = pipeline()
    found = []
    for _ in range(2):
        for output in pipe.run():
            host = output.as_cpu() if device == "gpu" else output
            found += [np.array(host.at(k)) for k in range(4)]
    return found


@pytest.mark.parametrize("settings", [{}, {"fuse": False}, {"prefetch_queue_depth": 1}])
def test_the_gpu_gives_what_the_cpu_gives(settings):
    for got, wanted in zip(chain("gpu", **settings), chain("cpu"), strict=True):
        np.testing.assert_array_equal(got, wanted)


def test_the_region_of_the_gpu_cuts_on_the_cpu():
    files = [encoded(name) for name in CLIPS[:2]]

    @pipeline_def(batch_size=2, num_threads=2, device_id=0)
    def pipeline():
        audio, _ = fn.decoders.audio(fn.external_source(source=lambda: files), downmix=True)
        ends = {"window_length": 512, "reset_interval": 2048, "cutoff_db": -35}
        begin, length = fn.nonsilent_region(audio.gpu(), **ends)
        first, count = fn.nonsilent_region(audio, **ends)
        return (
            fn.slice(audio, begin.cpu(), length.cpu(), axes=[0]),
            fn.slice(audio, first, count, axes=[0]),
        )

    by_gpu, by_cpu = pipeline().run()
    for k in range(2):
        np.testing.assert_array_equal(by_gpu.at(k), by_cpu.at(k))
