"""Iterations that are queued again without their operators: the same outputs, whatever comes."""

from __future__ import annotations

import itertools
from pathlib import Path

import numpy as np
import pytest

from headrace import fn, types
from headrace.executor.gpu import stage_replays
from headrace.pipeline import Pipeline
from headrace.tensors.gpu.device import trim_devices
from tests.cases.files import write_files
from tests.cases.table import all_cases
from tests.golden.running import as_array, member

SIZE = 3
ITERATIONS = 12


@pytest.fixture
def made(monkeypatch):
    """The replays that are made, and `None` for each stage that could not be replayed."""
    found = []
    make = stage_replays.StageReplays._made

    def noted(*args):
        found.append(make(*args))
        return found[-1]

    monkeypatch.setattr(stage_replays.StageReplays, "_made", noted)
    return found


def _outputs(define, feed, iterations=ITERATIONS, size=SIZE):
    """Outputs of each iteration, all of which are kept until the last is there."""
    pipe = Pipeline(size, 2, 0, seed=5, workers="threads", prefetch_queue_depth=1)
    with pipe:
        turn = iter(feed)
        images = fn.external_source(source=lambda: next(turn), layout="HWC")
        outputs = define(images.gpu())
        pipe.set_outputs(*(outputs if isinstance(outputs, tuple) else (outputs,)))
    kept = [pipe.run() for _ in range(iterations)]
    return [[[np.array(x) for x in out.as_cpu()] for out in outputs] for outputs in kept]


def _images(*shapes):
    rng = np.random.default_rng(1)
    return [
        [
            rng.integers(0, 256, s, np.uint8)
            for s in (shape if isinstance(shape, list) else [shape] * SIZE)
        ]
        for shape in shapes
    ]


def _without(monkeypatch, *args, **kwargs):
    with monkeypatch.context() as patch:
        patch.setattr(stage_replays.StageReplays, "run", lambda *_: None)
        return _outputs(*args, **kwargs)


def _same(one, other):
    for mine, theirs in zip(one, other, strict=True):
        for a, b in zip(mine, theirs, strict=True):
            for x, y in zip(a, b, strict=True):
                np.testing.assert_array_equal(x, y)


def _drawn(low, high):
    return fn.random.uniform(range=(low, high))


CHAINS = {
    "colors": lambda x: fn.color_twist(x, saturation=_drawn(0.5, 1.5), brightness=_drawn(0.5, 1)),
    "three": lambda x: fn.color_twist(
        fn.rotate(fn.crop(x, crop=(10, 9)), angle=30.0, keep_size=True), hue=_drawn(0, 90)
    ),
    "turned": lambda x: fn.rotate(x, angle=_drawn(-30, 30), keep_size=True),
    "mirrored": lambda x: fn.crop_mirror_normalize(
        fn.resize(x, size=(8, 7)), mirror=fn.random.coin_flip(), mean=[9.0], std=[2.0]
    ),
    "normalized": lambda x: fn.crop_mirror_normalize(
        x, mirror=fn.random.coin_flip(), mean=[9.0], std=[2.0]
    ),
    "adjusted": lambda x: fn.gaussian_blur(
        fn.brightness_contrast(
            fn.rotate(x, angle=_drawn(-9, 9), keep_size=True), contrast=_drawn(0.5, 1.5)
        ),
        sigma=1.0,
    ),
    "cropped": lambda x: fn.color_twist(
        fn.crop(x, crop=(8, 7), crop_pos_x=_drawn(0, 1), crop_pos_y=_drawn(0, 1)),
        saturation=_drawn(0.5, 1.5),
    ),
    "window": lambda x: fn.crop_mirror_normalize(
        x, crop=(7, 8), crop_pos_x=_drawn(0, 1), mirror=fn.random.coin_flip(), mean=[9.0], std=[2.0]
    ),
    "transposed": lambda x: fn.transpose(
        fn.flip(
            fn.crop(x, crop=(8, 7), crop_pos_x=_drawn(0, 1)),
            horizontal=fn.random.coin_flip(),
            vertical=fn.random.coin_flip(),
        ),
        perm=[2, 0, 1],
    ),
    "swapped": lambda x: fn.transpose(fn.flip(x, horizontal=fn.random.coin_flip()), perm=[1, 0, 2]),
    "flipped": lambda x: fn.flip(x, horizontal=0, vertical=fn.random.coin_flip(probability=0.9)),
    "compressed": lambda x: fn.jpeg_compression_distortion(
        x, quality=fn.random.uniform(range=[5, 95], dtype=types.INT32)
    ),
    "masked": lambda x: fn.grid_mask(x, ratio=_drawn(0.2, 0.6), angle=_drawn(0, 3), tile=4),
    "waves": lambda x: fn.water(x, mask=fn.random.coin_flip(), ampl_x=2.0, freq_x=0.3),
    "several": lambda x: (x, fn.flip(x), fn.reductions.mean(x, axes=[0, 1])),
}


@pytest.mark.parametrize("name", CHAINS)
def test_outputs_are_those_of_the_operators(name, made, monkeypatch):
    """With numbers that are drawn, and outputs that are kept."""
    feed = _images(*[(12, 11, 3)] * ITERATIONS)
    expected = _without(monkeypatch, CHAINS[name], feed)
    _same(_outputs(CHAINS[name], feed), expected)
    assert [each is not None for each in made] == [True]
    monkeypatch.setenv("HEADRACE_CHECK", "1")
    _same(_outputs(CHAINS[name], feed), expected)


def test_shapes_may_change(made, monkeypatch):
    """Batches of other shapes, ragged ones, and again those before."""
    shapes = [(12, 11, 3)] * 9 + [(6, 7, 3)] * 9 + [[(4, 5, 3), (5, 4, 3), (4, 4, 3)]] * 3
    feed = _images(*shapes, *shapes)
    expected = _without(monkeypatch, CHAINS["colors"], feed, len(feed))
    _same(_outputs(CHAINS["colors"], feed, len(feed)), expected)
    assert len(made) == 2
    assert None not in made


def test_numbers_that_were_always_the_same_may_change(made, monkeypatch):
    """Up to then it is not known what follows from them."""
    feed = _images(*[(12, 11, 3)] * 20)

    def define(x):
        numbers = itertools.chain([1.0] * 12, [0.5] * 4, [1.5] * 99)
        contrast = fn.external_source(source=lambda: np.full(SIZE, next(numbers), np.float32))
        return fn.color_twist(x, saturation=_drawn(0.5, 1.5), contrast=contrast)

    expected = _without(monkeypatch, define, feed, 20)
    _same(_outputs(define, feed, 20), expected)
    assert [each is not None for each in made] == [True]


def test_bad_numbers_are_told_of(made):
    """With sample and operator, as ever, and the iterations after it go on."""
    numbers = itertools.chain([1.0] * 10, [np.nan], [2.0] * 99)
    feed = _images(*[(12, 11, 3)] * 20)
    pipe = Pipeline(SIZE, 2, 0, workers="threads", prefetch_queue_depth=1)
    with pipe:
        turn = iter(feed)
        images = fn.external_source(source=lambda: next(turn), layout="HWC").gpu()
        angle = fn.external_source(source=lambda: np.full(SIZE, next(numbers), np.float32))
        pipe.set_outputs(fn.rotate(images, angle=angle, keep_size=True))
    for _ in range(10):
        pipe.run()
    with pytest.raises(ValueError, match="`angle` must be a finite number"):
        pipe.run()
    pipe.run()


CASES = [
    case
    for case in all_cases()
    if "gpu" in case.devices and "mixed" not in case.schema.devices and not case.schema.reader
    if case.inputs and case.written is None
]


@pytest.mark.parametrize("case", CASES, ids=lambda c: c.key)
@pytest.mark.nightly
def test_each_operator(case, made, monkeypatch, tmp_path):
    """Whatever is replayed is what operators queue: compared word by word."""
    monkeypatch.setenv("HEADRACE_CHECK", "1")
    _run_again(case, tmp_path)


def _run_again(case, root: Path):
    write_files(root)

    def turning(values):
        turn = itertools.count()

        def batch():
            first = next(turn) % len(values)
            return values[first:] + values[:first]

        return batch

    pipe = Pipeline(case.size, 2, 0, seed=3, workers="threads")
    with pipe:
        inputs = []
        for rows, layout in case.inputs:
            first = np.asarray(rows[0])
            alike = [np.roll(first, k) if first.ndim else first for k in range(len(rows))]
            inputs.append(fn.external_source(turning(alike), layout=layout or None).gpu())
        args = case.constants(types, str(root))
        for name, values in case.tensors.items():
            rows = [as_array(value) for value in values]
            args[name] = fn.external_source(turning(rows))
        found = member(fn, case.name)(*inputs, device="gpu", **args)
        pipe.set_outputs(*(found if isinstance(found, (list, tuple)) else [found]))
    for _ in range(ITERATIONS):
        pipe.run()


def test_a_device_that_is_full(made, emulated_gpu, monkeypatch):
    """Recordings need memory for several iterations; without it, operators do as before."""
    feed = _images(*[(64, 64, 3)] * 20)
    expected = _without(monkeypatch, CHAINS["adjusted"], feed, 20)
    trim_devices()
    emulated_gpu.memory_bytes = emulated_gpu._memory.device_bytes + 900_000
    pipe = Pipeline(SIZE, 2, 0, seed=5, workers="threads", prefetch_queue_depth=1)
    with pipe:
        turn = iter(feed)
        images = fn.external_source(source=lambda: next(turn), layout="HWC")
        pipe.set_outputs(CHAINS["adjusted"](images.gpu()))
    for k in range(20):
        (out,) = pipe.run()
        for x, y in zip(out.as_cpu(), expected[k][0], strict=True):
            np.testing.assert_array_equal(np.array(x), y)
    assert made == []


def test_a_wrong_replay_is_found_out(made, monkeypatch):
    """What compares replays with operators tells of one whose addresses are off by one."""
    monkeypatch.setenv("HEADRACE_CHECK", "1")
    make = stage_replays.StageReplays._made

    def spoiled(*args):
        found = make(*args)
        if found is not None:
            found._words[found._template.positions[0]] += np.uint64(1)
        return found

    monkeypatch.setattr(stage_replays.StageReplays, "_made", spoiled)
    with pytest.raises(RuntimeError, match="not what was foretold"):
        _outputs(CHAINS["three"], _images(*[(12, 11, 3)] * ITERATIONS))
