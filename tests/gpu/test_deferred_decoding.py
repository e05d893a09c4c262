"""Pipelines whose JPEG engines decode one batch while the next is made ready."""

from __future__ import annotations

import threading

import cv2
import numpy as np
import pytest

from headrace import Pipeline, fn
from headrace.errors import OperatorError
from headrace.executor.gpu.tasks import GpuTasks
from headrace.kernels.gpu.decode import decoders, nvjpeg
from headrace.kernels.gpu.decode.engines import JpegEngines
from tests.support.gpu.nvjpeg import EmulatedNvJpeg

COUNT = 11


@pytest.fixture(autouse=True)
def library(emulated_gpu, monkeypatch):
    found = EmulatedNvJpeg()
    monkeypatch.setattr(nvjpeg, "functions", lambda: found)
    monkeypatch.setattr(decoders, "make_engines", JpegEngines)
    return found


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    folder = tmp_path_factory.mktemp("files")
    rng = np.random.default_rng(5)
    for number in range(COUNT):
        image = cv2.GaussianBlur(rng.integers(0, 255, (40 + number, 50, 3), np.uint8), (5, 5), 2)
        assert cv2.imwrite(str(folder / f"{number:02}.jpg"), image)
    return sorted(str(path) for path in folder.iterdir())


@pytest.fixture
def bad_files(files, tmp_path):
    """The same, but that numbers 2 and 6 end too early, which shows when they are decoded."""
    found = list(files)
    for number in (2, 6):
        with open(files[number], "rb") as file:
            content = file.read()
        path = tmp_path / f"bad{number}.jpg"
        path.write_bytes(content[:300] + b"\xff\xd9")
        found[number] = str(path)
    return found


def pipeline(files, device, *, crop=False, **more):
    options = {"batch_size": 4, "num_threads": 2, "seed": 7}
    pipe = Pipeline(**options, device_id=None if device == "cpu" else 0, **more)
    with pipe:
        encoded, numbers = fn.readers.file(files=files, name="reader")
        if crop:
            images = fn.decoders.image_random_crop(
                encoded, device=device, jpeg_fancy_upsampling=False
            )
        else:
            images = fn.decoders.image(encoded, device=device, jpeg_fancy_upsampling=False)
        images = fn.resize(images, size=(20, 20))
        pipe.set_outputs(images, numbers if device == "cpu" else numbers.gpu())
    return pipe


def outputs(pipe, count):
    found = []
    for _ in range(count):
        batches = [batch.as_cpu() for batch in pipe.run()]
        found.append([np.stack([batch.at(i) for i in range(len(batch))]) for batch in batches])
    return found


def check_same(ours, theirs):
    for one, other in zip(ours, theirs, strict=True):
        for got, want in zip(one, other, strict=True):
            np.testing.assert_array_equal(got, want)


@pytest.mark.parametrize("crop", [False, True])
@pytest.mark.parametrize("depth", [1, 2, 5])
def test_as_on_the_cpu(files, crop, depth):
    there = pipeline(files, "mixed", crop=crop, prefetch_queue_depth=depth)
    here = pipeline(files, "cpu", crop=crop)
    got, want = outputs(there, 8), outputs(here, 8)
    for (images, numbers), (expected, expected_numbers) in zip(got, want, strict=True):
        np.testing.assert_array_equal(numbers, expected_numbers)
        difference = np.abs(images.astype(int) - expected)
        assert difference.max() <= 1  # resampling rounds


def test_the_next_batch_is_made_ready_while_one_is_decoded(library, files, monkeypatch):
    second = threading.Event()
    begun = []
    begin, decode = JpegEngines.begin, EmulatedNvJpeg._decode
    waited = []

    def beginning(self, *args):
        found = begin(self, *args)
        begun.append(found)
        if len(begun) == 2:
            second.set()
        return found

    def decoding(self, *args):
        if not waited:
            waited.append(second.wait(20))
        return decode(self, *args)

    monkeypatch.setattr(JpegEngines, "begin", beginning)
    monkeypatch.setattr(EmulatedNvJpeg, "_decode", decoding)
    pipe = pipeline(files, "mixed")
    outputs(pipe, 2)
    assert waited == [True]


@pytest.mark.parametrize("policy", ["skip", "replace"])
def test_bad_files(library, bad_files, policy):
    library.broken = (302,)
    there = pipeline(bad_files, "mixed", on_bad_sample=policy)
    here = pipeline(bad_files, "cpu", on_bad_sample=policy)
    got, want = outputs(there, 6), outputs(here, 6)
    check_same([[n] for _, n in got], [[n] for _, n in want])
    for (images, _), (expected, _) in zip(got, want, strict=True):
        assert np.abs(images.astype(int) - expected).max() <= 1
    for pipe in (here, there):  # those of later iterations may be known already
        sources = {b.source[-8:] for b in pipe.bad_samples if b.iteration < 6}
        assert sources == {"bad2.jpg", "bad6.jpg"}


def test_a_bad_file_ends_the_run(library, bad_files):
    library.broken = (302,)
    pipe = pipeline(bad_files, "mixed")
    with pytest.raises(OperatorError, match=r"bad2\.jpg"):
        pipe.run()


def test_runs_are_the_same_however_far_ahead(files):
    first = outputs(pipeline(files, "mixed", crop=True), 6)
    for options in ({"prefetch_queue_depth": 4}, {"exec_async": False}, {"exec_pipelined": False}):
        check_same(outputs(pipeline(files, "mixed", crop=True, **options), 6), first)


def test_two_pipelines_share_the_thread(library, files):
    one, other = pipeline(files, "mixed"), pipeline(files, "mixed", crop=True)
    alone = outputs(pipeline(files, "mixed"), 5)
    found = []
    for _ in range(5):
        found += outputs(one, 1)
        outputs(other, 1)
    check_same(found, alone)
    assert set(library.threads) == {"headrace-engines"}


def test_an_iteration_more_is_begun_where_a_gpu_decodes_files(files):
    for device, more in (("cpu", 2), ("mixed", 3)):
        pipe = pipeline(files, device)
        pipe.build()
        pipe.schedule_run()
        assert pipe._executor.pending() == more
    for options, count in (({"exec_pipelined": False}, 1), ({"exec_async": False}, 2)):
        pipe = pipeline(files, "mixed", **options)
        pipe.build()
        pipe.schedule_run()
        assert pipe._executor.pending() == count


def test_a_pipeline_that_is_dropped_while_it_decodes(library, files):
    pipe = pipeline(files, "mixed")
    pipe.schedule_run()
    del pipe
    again = pipeline(files, "mixed")
    assert len(outputs(again, 2)) == 2


def test_the_thread_that_waits_for_decoders_goes_on_with_the_other_stream(files, monkeypatch):
    found = []
    run = GpuTasks.launch

    def noted(self, iteration, stream):
        found.append((stream.name, threading.current_thread().name))
        return run(self, iteration, stream)

    monkeypatch.setattr(GpuTasks, "launch", noted)
    pipe = pipeline(files, "mixed")
    pipe.run()
    while not pipe._executor.monitor.streams["gpu"]._waiters:  # its own thread sleeps
        threading.Event().wait(0.001)
    found.clear()
    theirs = outputs(pipeline(files, "cpu"), 9)
    check_same(outputs(pipe, 8), theirs[1:])
    assert {name for stream, name in found if stream == "gpu"} == {"headrace-mixed-end"}
