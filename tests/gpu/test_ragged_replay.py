"""Iterations whose shapes are never the same, queued again without their operators."""

from __future__ import annotations

import itertools
from collections import Counter

import numpy as np
import pytest

from headrace import fn, pipeline_def, types
from headrace.errors import HeadraceError
from headrace.executor.gpu import replay, stage_replays
from headrace.pipeline import Pipeline
from tests.cases.files import write_files
from tests.cases.table import all_cases
from tests.golden.running import as_array, member
from tests.support.gpu.foreign import DLPackArray

SIZE = 3
ITERATIONS = 14
BEFORE = 7
"""Iterations before the first that is replayed."""


@pytest.fixture
def replayed(monkeypatch):
    """Numbers of iterations that were planned for a replay, by what came of it."""
    found = Counter()
    plan = replay.Replay.plan

    def counted(*args):
        kind = plan(*args)
        found[kind] += 1
        return kind

    monkeypatch.setattr(replay.Replay, "plan", counted)
    return found


@pytest.fixture
def checked(monkeypatch):
    """Each iteration is compared, word by word, with what was foretold."""
    monkeypatch.setenv("HEADRACE_CHECK", "1")


def _outputs(define, feed, layout, *, on_bad_sample="raise"):
    """Outputs of each iteration, all of which are kept until the last is there."""
    size = len(feed[0])
    pipe = Pipeline(size, 2, 0, seed=5, workers="threads", prefetch_queue_depth=1)
    with pipe:
        turn = iter(feed)
        data = fn.external_source(source=lambda: next(turn), layout=layout)
        outputs = define(data.gpu())
        pipe.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    kept = [pipe.run() for _ in feed]
    return [[[np.array(x) for x in out.as_cpu()] for out in outputs] for outputs in kept]


def _expected(monkeypatch, *args):
    with monkeypatch.context() as patch:
        patch.setattr(stage_replays.StageReplays, "run", lambda *_: None)
        return _outputs(*args)


def _same(one, other):
    for mine, theirs in zip(one, other, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_array_equal(x, y)


def _images(*batches):
    rng = np.random.default_rng(1)
    return [[rng.integers(0, 256, shape, np.uint8) for shape in shapes] for shapes in batches]


def _signals(*batches):
    rng = np.random.default_rng(1)
    return [[rng.normal(size=n).astype(np.float32) for n in sizes] for sizes in batches]


def _random_images(count=ITERATIONS, least=26, most=36):
    rng = np.random.default_rng(2)
    return _images(
        *[[(*rng.integers(least, most, 2).tolist(), 3) for _ in range(SIZE)] for _ in range(count)]
    )


def _random_signals(count=ITERATIONS):
    rng = np.random.default_rng(2)
    return _signals(*[rng.integers(300, 400, SIZE).tolist() for _ in range(count)])


def _drawn(low, high):
    return fn.random.uniform(range=(low, high))


def _spectra(x, cut=fn.slice):
    x = cut(x, rel_start=_drawn(0, 0.5), shape=[128], axes=[0])
    x = x * _drawn(0.5, 1.5).gpu()
    x = fn.spectrogram(x, nfft=32, window_length=32, window_step=16)
    x = fn.to_decibels(fn.mel_filter_bank(x, sample_rate=16000.0, nfilter=8), cutoff_db=-80.0)
    return fn.normalize(x, axes=[0, 1])


IMAGES = {
    "cropped": lambda x: fn.crop(x, crop=(9, 24)),
    "three": lambda x: fn.color_twist(
        fn.rotate(fn.crop(x, crop=(10, 24)), angle=30.0, keep_size=True), hue=_drawn(0, 90)
    ),
    "anywhere": lambda x: fn.color_twist(
        fn.crop(x, crop=(9, 24), crop_pos_x=_drawn(0, 1), crop_pos_y=_drawn(0, 1)),
        saturation=_drawn(0.5, 1.5),
    ),
    "resized": lambda x: fn.crop_mirror_normalize(
        fn.resize(x, size=(8, 7)), mirror=fn.random.coin_flip(), mean=[9.0], std=[2.0]
    ),
    "augmented": lambda x: fn.resize(
        fn.gaussian_blur(
            fn.brightness_contrast(
                fn.rotate(x, angle=_drawn(-9, 9), keep_size=True), contrast=_drawn(0.5, 1.5)
            ),
            sigma=1.0,
        ),
        size=(8, 7),
    ),
    "ragged to the end": lambda x: fn.color_twist(
        fn.rotate(x, angle=_drawn(-9, 9), keep_size=True), saturation=_drawn(0.5, 1.5)
    ),
    "pointwise": lambda x: fn.cast(
        fn.brightness_contrast(x, brightness=_drawn(0.5, 1.5)) * 0.5, dtype=types.UINT8
    ),
    "windows": lambda x: fn.crop_mirror_normalize(
        fn.resize(x, resize_shorter=32), crop=(28, 29), mean=[9.0, 3.0, 1.0], std=[2.0]
    ),
    "normalized": lambda x: fn.crop_mirror_normalize(
        x, crop=(9, 24), mirror=fn.random.coin_flip(), mean=[9.0, 3.0, 1.0], std=[2.0]
    ),
    "normalized whole": lambda x: fn.crop_mirror_normalize(
        x, mean=[9.0], std=[2.0], output_layout="HWC"
    ),
    "two outputs": lambda x: (fn.rotate(x, angle=30.0, keep_size=True), fn.crop(x, crop=(9, 24))),
}


def _compare(define, feed, layout, replayed, monkeypatch, count=ITERATIONS - BEFORE):
    """Outputs are those of the operators, `count` iterations of which were replayed."""
    args = define, feed, layout
    expected = _expected(monkeypatch, *args)
    _same(_outputs(*args), expected)
    assert replayed[replay.ALIKE] == count
    monkeypatch.setenv("HEADRACE_CHECK", "1")
    _same(_outputs(*args), expected)


@pytest.mark.parametrize("name", IMAGES)
def test_images(name, replayed, monkeypatch):
    """Of other sizes in each iteration, with numbers that are drawn."""
    _compare(IMAGES[name], _random_images(), "HWC", replayed, monkeypatch)
    assert set(replayed) == {replay.ALIKE}


@pytest.mark.parametrize("shapes", ["ragged", "uniform"])
@pytest.mark.parametrize("name", ["three", "augmented"])
def test_samples_that_lie_anywhere(name, shapes, gpu_runtime, replayed, monkeypatch):
    """Each in memory of its own, of one shape or of several."""
    images = _random_images()
    if shapes == "uniform":
        images = _images(*[[(30, 31, 3)] * SIZE] * ITERATIONS)

    def outputs():
        pipe = Pipeline(SIZE, 2, 0, seed=5, workers="threads", prefetch_queue_depth=1)
        with pipe:
            turn = iter(images)
            data = fn.external_source(
                source=lambda: [DLPackArray(gpu_runtime, image) for image in next(turn)],
                layout="HWC",
                device="gpu",
                no_copy=True,
            )
            pipe.set_outputs(IMAGES[name](data))
        return [[[np.array(x) for x in out.as_cpu()] for out in pipe.run()] for _ in images]

    with monkeypatch.context() as patch:
        patch.setattr(stage_replays.StageReplays, "run", lambda *_: None)
        expected = outputs()
    _same(outputs(), expected)
    assert replayed == {replay.ALIKE: ITERATIONS - BEFORE}
    monkeypatch.setenv("HEADRACE_CHECK", "1")
    _same(outputs(), expected)


def test_signals(replayed, monkeypatch):
    """Of other lengths in each iteration, times numbers that are on the host."""
    _compare(_spectra, _random_signals(), "", replayed, monkeypatch)
    assert set(replayed) == {replay.ALIKE}


def test_whole_signals(replayed, monkeypatch):
    """Spectra of whole signals have as many columns as these are long."""

    def define(x):
        x = fn.preemphasis_filter(x) * _drawn(0.5, 1.5).gpu()
        x = fn.spectrogram(x, nfft=32, window_length=32, window_step=16)
        return fn.to_decibels(fn.mel_filter_bank(x, sample_rate=16000.0, nfilter=8))

    _compare(define, _random_signals(), "", replayed, monkeypatch)
    assert set(replayed) == {replay.ALIKE}


@pytest.mark.parametrize("name", ["three", "resized", "augmented", "ragged to the end"])
def test_batches_become_uniform(name, replayed, monkeypatch):
    """Batches of one shape, in one piece or not, are another kind; ragged ones go on after them."""
    ragged, uniform = [_random_images(9) for _ in range(2)], _images(*[[(30, 31, 3)] * SIZE] * 9)
    feed = [*ragged[0], *uniform, *ragged[1]]
    _compare(IMAGES[name], feed, "HWC", replayed, monkeypatch, 2 + 2 + 9)


@pytest.mark.parametrize("name", ["three", "resized", "augmented", "ragged to the end"])
def test_a_batch_that_is_much_larger(name, replayed, monkeypatch):
    """Memory between operators grows with it, and serves smaller ones again."""
    feed = _random_images()
    feed[-4] = _images([(190, 200, 3), (30, 31, 3), (211, 190, 3)])[0]
    feed[-2] = _images([(290, 300, 3), (311, 290, 3), (30, 31, 3)])[0]
    _compare(IMAGES[name], feed, "HWC", replayed, monkeypatch)


@pytest.mark.parametrize("name", ["resized", "augmented", "ragged to the end"])
@pytest.mark.parametrize("empty", [(0, 31, 3), (30, 0, 3), (0, 0, 3)])
def test_empty_samples(name, empty, monkeypatch):
    """They come when others have been recorded, and are what operators make of them."""
    feed = _random_images()
    feed[-3][1] = np.zeros(empty, np.uint8)
    feed[-1] = [np.zeros(empty, np.uint8) for _ in range(SIZE)]
    args = IMAGES[name], feed, "HWC"
    try:
        expected = _expected(monkeypatch, *args)
    except HeadraceError as error:
        with pytest.raises(type(error)):
            _outputs(*args)
        return
    _same(_outputs(*args), expected)
    monkeypatch.setenv("HEADRACE_CHECK", "1")
    _same(_outputs(*args), expected)


def test_channels_may_change(monkeypatch):
    """Kernels of so many channels serve no others."""
    feed = _random_images(20)
    for batch in feed[10:15]:
        batch[:] = [image[:, :, :1].copy() for image in batch]
    for batch in feed[15:17]:
        batch[0] = batch[0][:, :, :1].copy()

    def define(x):
        x = fn.rotate(x, angle=_drawn(-9, 9), keep_size=True)
        return fn.gaussian_blur(x, sigma=1.0)

    args = define, feed, "HWC"
    expected = _expected(monkeypatch, *args)
    _same(_outputs(*args), expected)
    monkeypatch.setenv("HEADRACE_CHECK", "1")
    _same(_outputs(*args), expected)


def test_a_kind_that_does_not_come_back(replayed, monkeypatch):
    """A replay of images with colours gives way where there are only gray ones from then on."""
    feed = _random_images(40)
    for batch in feed[10:]:
        batch[:] = [image[:, :, :1].copy() for image in batch]

    def define(x):
        return fn.gaussian_blur(fn.rotate(x, angle=_drawn(-9, 9), keep_size=True), sigma=1.0)

    args = define, feed, "HWC"
    expected = _expected(monkeypatch, *args)
    _same(_outputs(*args), expected)
    assert replayed == {replay.ALIKE: 3 + 7, replay.ANOTHER: 16}


def test_bad_samples_are_told_of(replayed):
    """With operator and sample, as ever, and iterations after them are replayed."""
    feed = _random_images(20)
    feed[12][1] = feed[12][1][:5]
    pipe = Pipeline(SIZE, 2, 0, seed=5, workers="threads", prefetch_queue_depth=1)
    with pipe:
        turn = iter(feed)
        data = fn.external_source(source=lambda: next(turn), layout="HWC").gpu()
        pipe.set_outputs(IMAGES["three"](data))
    for _ in range(12):
        pipe.run()
    with pytest.raises(HeadraceError, match=r"crop(?s:.*)sample 1"):
        pipe.run()
    for _ in range(7):
        pipe.run()
    assert replayed == {replay.ALIKE: 12, replay.ANOTHER: 1}


def test_branches(monkeypatch):
    """Samples that take either branch are not replayed."""
    feed = _random_images(16)

    @pipeline_def(batch_size=SIZE, num_threads=2, device_id=0, seed=5, enable_conditionals=True)
    def branching():
        turn = iter(feed)
        x = fn.external_source(source=lambda: next(turn), layout="HWC").gpu()
        if fn.random.coin_flip(dtype=types.BOOL):
            x = fn.rotate(x, angle=30.0, keep_size=True)
        return fn.resize(x, size=(8, 7))

    def outputs():
        pipe = branching(workers="threads", prefetch_queue_depth=1)
        return [[[np.array(y) for y in out.as_cpu()] for out in pipe.run()] for _ in feed]

    with monkeypatch.context() as patch:
        patch.setattr(stage_replays.StageReplays, "run", lambda *_: None)
        expected = outputs()
    _same(outputs(), expected)


def test_a_wrong_replay_is_found_out(checked, monkeypatch):
    """What compares replays with operators tells of one that takes shapes of another iteration."""
    make = stage_replays.StageReplays._made

    def spoiled(*args):
        found = make(*args)
        if found is not None and found._values.tracked:
            values = found._values
            found._values = values._replace(
                tracked=[each._replace(shapes=each.shapes.copy()) for each in values.tracked]
            )
        return found

    monkeypatch.setattr(stage_replays.StageReplays, "_made", spoiled)
    with pytest.raises(RuntimeError, match="not what was foretold"):
        _outputs(IMAGES["ragged to the end"], _random_images(), "HWC")


CASES = [
    case
    for case in all_cases()
    if "gpu" in case.devices and "mixed" not in case.schema.devices and not case.schema.reader
    if case.inputs and case.written is None
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.key)
@pytest.mark.nightly
def test_each_operator(case, checked, tmp_path, monkeypatch):
    """Whatever is replayed is what operators queue, where each batch has shapes of its own."""
    write_files(tmp_path)
    with monkeypatch.context() as patch:
        patch.setattr(stage_replays.StageReplays, "run", lambda *_: None)
        try:
            _run_ragged(case, tmp_path)
        except HeadraceError:
            pytest.skip("its samples are not to be cut")
    _run_ragged(case, tmp_path)


def _run_ragged(case, root):
    rng = np.random.default_rng(4)
    cuts = rng.integers(0, 4, (ITERATIONS, case.size, 2))

    def source(rows, layout):
        first = np.asarray(rows[0])
        axes = [layout.index(a) for a in "HW" if a in layout]
        if not layout and first.ndim == 1:
            axes = [0]
        turn = itertools.count()

        def batch():
            number = next(turn) % ITERATIONS
            found = []
            for k in range(len(rows)):
                window = [slice(None)] * first.ndim
                for place, axis in enumerate(axes):
                    cut = int(cuts[number, k, place])
                    window[axis] = slice(0, max(first.shape[axis] - cut, 1))
                found.append(np.ascontiguousarray(np.roll(first, number + k)[tuple(window)]))
            return found

        return batch

    def turning(values):
        turn = itertools.count()

        def batch():
            first = next(turn) % len(values)
            return values[first:] + values[:first]

        return batch

    pipe = Pipeline(case.size, 2, 0, seed=3, workers="threads")
    with pipe:
        inputs = [
            fn.external_source(source(rows, layout), layout=layout or None).gpu()
            for rows, layout in case.inputs
        ]
        args = case.constants(types, str(root))
        for name, values in case.tensors.items():
            args[name] = fn.external_source(turning([as_array(value) for value in values]))
        found = member(fn, case.name)(*inputs, device="gpu", **args)
        pipe.set_outputs(*(found if isinstance(found, (list, tuple)) else [found]))
    for _ in range(ITERATIONS):
        pipe.run()
