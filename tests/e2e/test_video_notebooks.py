"""What DALI's notebooks on videos do, on generated files: each program after the import is changed.

They ask for a GPU; it is emulated by running them on the CPU, as `HEADRACE_GPU=never` does.
"""

from __future__ import annotations

import numpy as np
import pytest

from tests.support.videos import write_video

pytest.importorskip("av")
pytestmark = pytest.mark.filterwarnings("ignore:.*HEADRACE_GPU is 'never'")

SIMPLE = """
from nvidia.dali.pipeline import Pipeline
import nvidia.dali.ops as ops

class VideoPipe(Pipeline):
    def __init__(self, batch_size, num_threads, device_id, **where):
        super().__init__(batch_size, num_threads, device_id, seed=16)
        self.input = ops.readers.Video(
            device="gpu", sequence_length=8, shard_id=0, num_shards=1, random_shuffle=True,
            initial_fill=16, **where)

    def define_graph(self):
        return self.input(name="Reader")

pipe = VideoPipe(batch_size=2, num_threads=2, device_id=0, **where)
pipe.build()
batches = [[out.as_cpu().as_array() for out in pipe.run()] for _ in range(6)]
"""
LISTED = """
import tempfile
from nvidia.dali import pipeline_def
import nvidia.dali.fn as fn
import nvidia.dali.types as types

lines = f"{name} 0 0 10\\n{name} 1 10 20\\n{name} 2 20 25\\n"
tf = tempfile.NamedTemporaryFile()
tf.write(str.encode(lines))
tf.flush()

@pipeline_def
def video_pipe(file_list):
    video, label, start_frame_num, timestamps = fn.readers.video(
        device="gpu", file_list=file_list, sequence_length=1, shard_id=0, num_shards=1,
        random_shuffle=True, initial_fill=10, image_type=types.RGB, dtype=types.FLOAT,
        file_list_frame_num=True, enable_frame_num=True, enable_timestamps=True)
    return video, label, start_frame_num, timestamps

pipe = video_pipe(batch_size=4, num_threads=2, device_id=0, file_list=tf.name, seed=123456)
pipe.build()
batches = [[out.as_cpu().as_array() for out in pipe.run()] for _ in range(10)]
tf.close()
"""
RESIZED = """
from nvidia.dali import pipeline_def, fn

@pipeline_def(batch_size=3, num_threads=2, device_id=0)
def resized():
    return fn.readers.video_resize(
        device="gpu", filenames=names, sequence_length=8, resize_x=30, resize_y=20,
        pad_last_batch=True)

pipe = resized()
pipe.build()
batches = [[out.as_cpu().as_array() for out in pipe.run()] for _ in range(2)]
"""
FLOW = """
import numpy as np
from nvidia.dali import pipeline_def
import nvidia.dali.fn as fn

@pipeline_def
def optical_flow_pipe():
    video = fn.readers.video(device="gpu", filenames=name, sequence_length=10)
    of = fn.optical_flow(video, output_grid=4)
    return of

pipe = optical_flow_pipe(batch_size=1, num_threads=1, device_id=0)
pipe.build()
pipe_out = pipe.run()
batches = [[np.array(pipe_out[0][0].as_cpu())]]
"""
PER_FRAME = """
import numpy as np
from nvidia.dali import pipeline_def, fn

@pipeline_def(batch_size=2, num_threads=2, device_id=0)
def turned():
    video = fn.readers.video(device="gpu", filenames=names, sequence_length=5)
    angles = fn.per_frame(np.float32([0, 30, 60, 90, 180]))
    noisy = fn.gaussian_blur(video, sigma=fn.per_frame(np.float32([0.5, 1, 2, 3, 4])))
    return fn.rotate(video, angle=angles, keep_size=True), noisy

pipe = turned()
pipe.build()
batches = [[out.as_cpu().as_array() for out in pipe.run()]]
"""


@pytest.fixture(scope="module")
def files(tmp_path_factory):
    root = tmp_path_factory.mktemp("videos")
    names = []
    for number, folder in enumerate("ab"):
        (root / folder).mkdir()
        names.append(write_video(root / folder / "0.mp4", frames=30, seed=number))
    return str(root), names


@pytest.fixture(autouse=True)
def _no_gpu(monkeypatch):
    monkeypatch.setenv("HEADRACE_GPU", "never")


def run(program, **names):
    exec(compile(program.replace("nvidia.dali", "headrace"), "notebook", "exec"), names)
    return names["batches"]


def test_several_files(files):
    batches = run(SIMPLE, where={"filenames": files[1]})
    assert {out.shape for (out,) in batches} == {(2, 8, 48, 64, 3)}
    assert {out.dtype for (out,) in batches} == {np.dtype(np.uint8)}
    assert len({out.tobytes() for (batch,) in batches for out in batch}) == 6


def test_labels(files):
    batches = run(SIMPLE, where={"file_root": files[0]})
    assert {(out.shape, labels.shape) for out, labels in batches} == {((2, 8, 48, 64, 3), (2, 1))}
    assert {int(n) for _, labels in batches for n in labels.ravel()} == {0, 1}
    by_label = {}
    for out, labels in batches:
        for video, label in zip(out, labels.ravel().tolist(), strict=True):
            by_label.setdefault(label, set()).add(video.tobytes())
    assert not by_label[0] & by_label[1]


def test_parts_by_a_list(files):
    batches = run(LISTED, name=files[1][0])
    seen = set()
    for video, labels, numbers, times in batches:
        assert video.shape == (4, 1, 48, 64, 3)
        assert video.dtype == np.float32
        for label, number, time in zip(labels[:, 0], numbers[:, 0], times[:, 0], strict=True):
            assert label == min(number // 10, 2)
            assert time == pytest.approx(number / 24)
            seen.add(int(number))
    assert seen == set(range(25))


def test_resized(files):
    (first,), (second,) = run(RESIZED, names=files[1])
    assert first.shape == second.shape == (3, 8, 20, 30, 3)
    assert first.std() > 20


def test_optical_flow(files):
    ((flow,),) = run(FLOW, name=files[1][0])
    assert flow.shape == (9, 12, 16, 2)
    assert flow.dtype == np.float32
    assert np.abs(flow).max() > 0.2


def test_arguments_for_each_frame(files):
    ((turned, blurred),) = run(PER_FRAME, names=files[1])
    assert turned.shape == blurred.shape == (2, 5, 48, 64, 3)
    sharpness = [float(np.abs(np.diff(frame.astype(float), axis=1)).mean()) for frame in blurred[0]]
    # Frames differ, too.
    assert all(after < before for before, after in zip(sharpness, sharpness[2:], strict=False))
