"""Mixes of samples of a batch: pixels, targets, masks and boxes tell one story."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import headrace.experimental.dynamic as ndd
from headrace import Pipeline, fn, ops
from headrace.errors import HeadraceError

SIZE = 7
H, W = 30, 40
_rng = np.random.default_rng(1)
# Each pixel of an image tells the sample and the place.
IMAGES = [
    np.stack([np.full((H, W), 10 * k), *np.mgrid[:H, :W]], -1).astype(np.uint8) for k in range(SIZE)
]
NOISE = [_rng.integers(0, 255, (H, W, 3), np.uint8) for _ in range(SIZE)]
LABELS = [np.int32([k]) for k in range(SIZE)]
PLACES = [[(2, 3, 12, 14), (16, 20, 29, 38), (2, 25, 11, 33)][: 1 + k % 3] for k in range(SIZE)]
BOXES = [np.float32([(x / W, y / H, v / W, u / H) for y, x, u, v in p]) for p in PLACES]
OBJECTS = [np.int64([[10 * k + n + 1] for n in range(len(p))]) for k, p in enumerate(PLACES)]
MASKS = []
for _k in range(SIZE):
    MASKS.append(np.zeros((H, W, 1), np.uint8))
    for (_y, _x, _u, _v), _number in zip(PLACES[_k], OBJECTS[_k], strict=True):
        MASKS[-1][_y:_u, _x:_v] = _number


def made(define: Any, data: tuple[Any, ...], layouts: list[str], **more: Any) -> list[Any]:
    pipe = Pipeline(SIZE, device_id=None, **{"num_threads": 2, "seed": 3, **more})
    with pipe:
        given = fn.external_source(lambda: data, num_outputs=len(data), layout=layouts)
        found = define(*given)
        pipe.set_outputs(*(found if isinstance(found, list) else [found]))
    return [[[np.array(row) for row in out] for out in pipe.run()] for _ in range(2)]


def same(a: Any, b: Any) -> None:
    for x, y in zip(a, b, strict=True):
        if isinstance(x, list):
            same(x, y)
        else:
            np.testing.assert_array_equal(x, y)


@given(
    alpha=st.sampled_from([0.1, 1.0, 8.0]),
    chance=st.sampled_from([0.0, 0.5, 1.0]),
    seed=st.integers(0, 99),
)
@settings(max_examples=5)
def test_mixup(alpha, chance, seed):
    def define(images, labels):
        args = {"num_classes": 9, "alpha": alpha, "probability": chance, "seed": seed}
        mixed = fn.mixup(images, labels, **args)
        clips = fn.mixup(fn.stack(images, images), labels, **args)
        return [*mixed, *clips]

    runs = made(define, (NOISE, LABELS), ["HWC", ""])
    for images, targets, clips, same_targets in runs:
        same(targets, same_targets)
        for k, (image, target) in enumerate(zip(images, targets, strict=True)):
            np.testing.assert_allclose(target.sum(), 1, rtol=1e-6)
            others = np.flatnonzero(np.delete(target, k))
            # A small `alpha` draws weights that are 1 in float32: nothing is left for another.
            assert len(others) == (0 if chance == 0 else 1) or chance == 0.5 or target[k] == 1
            blend = sum(t * NOISE[j].astype(np.float64) for j, t in enumerate(target[:SIZE]))
            assert abs(image - blend).max() <= 0.5 + 1e-3
            same(clips[k], [image, image])
    mixed = [np.count_nonzero(t) == 2 for _, targets, _, _ in runs for t in targets]
    assert any(mixed) if chance == 1 else not any(mixed) if chance == 0 else True


@given(chance=st.sampled_from([0.5, 1.0]), seed=st.integers(0, 99))
@settings(max_examples=5)
def test_cutmix(chance, seed):
    runs = made(
        lambda images, labels: fn.cutmix(
            images, labels, num_classes=SIZE, probability=chance, seed=seed
        ),
        (IMAGES, LABELS),
        ["HWC", ""],
    )
    for images, targets in runs:
        for image, target in zip(images, targets, strict=True):
            same(image[..., 1:], IMAGES[0][..., 1:])  # each pixel where it was
            shares = [(image[..., 0] == 10 * j).mean() for j in range(SIZE)]
            np.testing.assert_allclose(target, shares, atol=1e-6)
            inside = np.argwhere(image[..., 0] != image[..., 0][0, 0])
            assert len(np.unique(image[..., 0])) <= 2
            if len(inside) and (image[0, 0, 0] == image[-1, -1, 0]):
                extents = inside.max(0) - inside.min(0) + 1
                assert extents.prod() == len(inside)  # a rectangle


@given(
    name=st.sampled_from(["mixup", "cutmix", "mosaic"]),
    ltrb=st.booleans(),
    chance=st.sampled_from([0.5, 1.0]),
    least=st.sampled_from([0.0, 0.3, 0.8]),
    seed=st.integers(0, 99),
)
@settings(max_examples=12)
def test_boxes_are_where_objects_are(name, ltrb, chance, least, seed):
    size = (36, 44) if name == "mosaic" else (H, W)

    def define(images, objects, boxes, masks):
        args = {"boxes": boxes, "ltrb": ltrb, "probability": chance, "seed": seed}
        if name == "mixup":
            return [*fn.mixup(images, objects, **args), masks]
        if name == "mosaic":
            args["output_size"] = size
        return getattr(fn, name)(images, objects, masks=masks, least_visible=least, **args)

    boxes = BOXES if ltrb else [np.c_[b[:, :2], b[:, 2:] - b[:, :2]] for b in BOXES]
    runs = made(define, (IMAGES, OBJECTS, boxes, MASKS), ["HWC", "", "", "HWC"])
    for run in runs:
        for k in range(SIZE):
            image, objects, found = (out[k] for out in run[:3])
            assert objects.shape == (len(found), 1)
            assert objects.dtype == np.int64
            if not ltrb:
                found = np.c_[found[:, :2], found[:, :2] + found[:, 2:]]
            if name == "mixup":
                own = [n for (n,) in objects if n // 10 == k]
                assert own == [n for (n,) in OBJECTS[k]]
                pairs = {int(n): box for (n,), box in zip(objects, found, strict=True)}
                for number, box in pairs.items():
                    np.testing.assert_allclose(box, BOXES[number // 10][number % 10 - 1], atol=1e-6)
                continue
            mask = run[3][k]
            assert image.shape[:2] == mask.shape[:2] == size
            seen = {int(n): np.argwhere(mask[..., 0] == n) for n in np.unique(mask) if n}
            kept = []
            for (number,), box in zip(objects.tolist(), found, strict=True):
                x, y, v, u = np.round(box * np.tile(size[::-1], 2)).astype(int)
                spots = [p for p in seen[number] if y <= p[0] < u and x <= p[1] < v]
                kept += [number]
                top, left, bottom, right = PLACES[number // 10][number % 10 - 1]
                area = (bottom - top) * (right - left)
                assert 0 < (u - y) * (v - x) <= area
                assert len(spots) >= least * area or name == "mosaic"  # may be there twice
                if name == "mosaic":
                    assert len(spots) == (u - y) * (v - x) >= least * area
            if least == 0:
                assert set(kept) == set(seen)
            for number in set(seen) - set(kept):
                top, left, bottom, right = PLACES[number // 10][number % 10 - 1]
                assert len(seen[number]) < 4 * max(least, 1e-9) * (bottom - top) * (right - left)
        if (
            chance == 1 and name == "mosaic"
        ):  # four times the same image may be drawn, but not always
            assert any(len(np.unique(image[..., 0])) > 1 for image in run[0])


def test_the_same_everywhere():
    def define(images, labels):
        return fn.cutmix(images, labels, num_classes=SIZE)

    wanted = made(define, (IMAGES, LABELS), ["HWC", ""], num_threads=1)
    same(made(define, (IMAGES, LABELS), ["HWC", ""], num_threads=4), wanted)
    classes = made(
        lambda images, labels: ops.Cutmix(num_classes=SIZE)(images, labels),
        (IMAGES, LABELS),
        ["HWC", ""],
        num_threads=1,
    )
    same(classes, wanted)
    processes = made(
        lambda images, labels: fn.cutmix(images + 0, labels + 0, num_classes=SIZE),
        (IMAGES, LABELS),
        ["HWC", ""],
        workers="processes",
    )
    same(processes, wanted)
    assert any((a != b).any() for a, b in zip(*[run[0] for run in wanted], strict=True))


def test_dynamic_mode():
    images, labels = ndd.batch(NOISE, layout="HWC"), ndd.batch(LABELS)
    runs = [
        ndd.mixup(images, labels, num_classes=SIZE, rng=ndd.random.RNG(seed=4)) for _ in range(2)
    ]
    pictures, targets = (out.cpu() for out in runs[0])
    same(*[[np.asarray(t) for t in run[0].tensors] for run in runs])
    for image, target in zip(pictures.tensors, targets.tensors, strict=True):
        shares = np.asarray(target)
        blend = sum(t * n.astype(np.float64) for t, n in zip(shares, NOISE, strict=True))
        assert abs(np.asarray(image) - blend).max() <= 0.5 + 1e-3
    boxes = ndd.batch(BOXES)
    found = ndd.mosaic(images, ndd.batch(OBJECTS), boxes=boxes, ltrb=True, output_size=(36, 44))
    assert [np.asarray(t).shape for t in found[0].tensors] == [(36, 44, 3)] * SIZE
    assert len(found) == 3
    alone = ndd.cutmix(ndd.tensor(IMAGES[2], layout="HWC"))
    same(np.asarray(alone), IMAGES[2])


def test_bad_samples():
    """A sample that fails is replaced before samples are mixed."""

    def check(sample: np.ndarray) -> np.ndarray:
        if sample[0] == 3:
            raise ValueError("bad")
        return sample

    def define(images, labels):
        labels = fn.python_function(labels, function=check)
        return fn.mixup(images, labels, num_classes=SIZE)

    runs = made(define, (IMAGES, LABELS), ["HWC", ""], on_bad_sample="replace")
    for image, target in zip(*runs[0], strict=True):
        assert target[3] == 0
        blend = sum(t * IMAGES[j].astype(float) for j, t in enumerate(target))
        assert abs(image[..., 0] - blend[..., 0]).max() <= 0.5 + 1e-3


@pytest.mark.parametrize(
    ("define", "words"),
    [
        (lambda i, n: fn.mixup(i, n), "give `num_classes`"),
        (lambda i, n: fn.mixup(i, n, num_classes=0), "`num_classes` is 0"),
        (lambda i, n: fn.mixup(i, alpha=0), "`alpha` is 0"),
        (lambda i, n: fn.mixup(i, alfa=1), "alfa"),
        (lambda i, n: fn.mixup(i, n, num_classes=9, device="gpu"), 'device "cpu"'),
        (lambda i, n: fn.cutmix(i, n, num_classes=9, device="gpu"), "gpu"),
        (lambda i, n: fn.mosaic(i), "`output_size` is missing"),
        (lambda i, n: fn.mosaic(i, output_size=(3, 0)), "height and width"),
        (
            lambda i, n: fn.cutmix(fn.resize(i, size=n + 20), n, num_classes=9),
            "images of one shape",
        ),
        (lambda i, n: fn.cutmix(i, n, boxes=n * 0.5), r"\(objects, 4\)"),
        (lambda i, n: fn.cutmix(i, n, boxes=n * 0.5, num_classes=4), "`fn.one_hot`"),
        (lambda i, n: fn.cutmix(fn.transpose(i, perm=[2, 0, 1]), n, num_classes=9), "CHW"),
        (lambda i, n: fn.mixup([i, i], n, num_classes=4), "call it for each"),
    ],
)
def test_errors(define, words):
    with pytest.raises(HeadraceError, match=words):
        made(define, (IMAGES, LABELS), ["HWC", ""])
