"""`headrace.auto_aug` against DALI: augmentations, policies, and how often each is chosen."""

from __future__ import annotations

import inspect

import numpy as np
import nvidia.dali.auto_aug.augmentations
import nvidia.dali.auto_aug.auto_augment
import nvidia.dali.auto_aug.rand_augment
import nvidia.dali.auto_aug.trivial_augment
import pytest

import headrace.auto_aug
from headrace import Pipeline, fn
from headrace.errors import HeadraceError
from tests.parity.support import assert_parity

THEIRS, OURS = nvidia.dali.auto_aug, headrace.auto_aug
NAMES = [
    name
    for name, value in vars(THEIRS.augmentations).items()
    if type(value).__name__ == "Augmentation"
]
GETTERS = (
    "auto_augment.get_image_net_policy",
    "auto_augment.get_reduced_cifar10_policy",
    "auto_augment.get_svhn_policy",
    "auto_augment.get_reduced_image_net_policy",
)
SUITES = (
    "rand_augment.get_rand_augment_suite",
    "rand_augment.get_rand_augment_non_monotonic_suite",
    "trivial_augment.get_trivial_augment_wide_suite",
)


def picture(height, width):
    rng = np.random.default_rng(height)
    slope = np.linspace(0, 150, height)[:, None, None] + np.linspace(0, 80, width)[:, None]
    return (slope + rng.integers(0, 25, (height, width, 3))).astype(np.uint8)


IMAGES = [picture(40, 60), picture(33, 21), np.full((8, 9, 3), 77, np.uint8)]


def found(root, path):
    for name in path.split("."):
        root = getattr(root, name)
    return root


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("name", NAMES)
def test_augmentations_of_given_magnitudes(name):
    def graph(lib, images, sign):
        op = getattr(lib.auto_aug.augmentations, name)
        more = {"shape": (40, 60)} if "shape" in inspect.signature(op.op).parameters else {}
        if op.mag_range is None:
            return op(images, **more)
        signed = lib.auto_aug.core.signed_bin
        return [
            op(images, magnitude_bin=signed(k, sign), num_magnitude_bins=11, **more)
            for k in (0, 3, 10)
        ]

    signs = [np.int32(k) for k in (0, 1, 1)]
    assert_parity(graph, IMAGES, signs, layouts=("HWC", ""), max_levels=0)


def described(augment):
    mags = augment.mag_range
    params = None
    if mags is not None:
        params = [np.asarray(augment.mag_to_param(m)).tolist() for m in np.float32(mags)]
    return augment.name, mags, augment.randomly_negate, augment.param_device, params


@pytest.mark.parametrize("use_shape", [False, True])
def test_suites_and_policies(use_shape):
    for path in SUITES:
        ours, theirs = found(OURS, path)(use_shape), found(THEIRS, path)(use_shape)
        assert [described(each) for each in ours] == [described(each) for each in theirs]
    for path in GETTERS:
        given = () if "reduced_image" in path else (use_shape,)
        ours, theirs = found(OURS, path)(*given), found(THEIRS, path)(*given)
        assert ours.name == theirs.name
        steps = [
            [[(described(a), p, m) for a, p, m in each] for each in policy.sub_policies]
            for policy in (ours, theirs)
        ]
        assert steps[0] == steps[1]
        assert list(ours.augmentations) == list(theirs.augmentations)


def run(graph, batch, threads=1, iterations=1):
    pipe = Pipeline(batch_size=len(batch), num_threads=threads, device_id=None, seed=5)
    with pipe:
        pipe.set_outputs(graph(fn.external_source(lambda: batch, layout="HWC")))
    return [np.array(each) for _ in range(iterations) for each in pipe.run()[0]]


def test_what_is_chosen_how_often():
    core, level = OURS.core, np.full((1, 1, 1), 100, np.uint8)
    adds = [
        core.augmentation(lambda x, _, k=k: fn.cast(x + k, dtype="uint8"), name=f"add{k}")
        for k in (1, 3, 9)
    ]
    policy = core.Policy(
        "adds", 1, [[(adds[0], 0.5, None), (adds[1], 1.0, None)], [(adds[2], 0.25, None)]]
    )
    apply = OURS.auto_augment.apply_auto_augment
    values = np.ravel(run(lambda x: apply(policy, x, seed=1), [level] * 1000))
    shares = {int(v): np.mean(values == v) for v in np.unique(values)}
    assert shares.keys() == {104, 103, 109, 100}
    expected = {104: 0.25, 103: 0.25, 109: 0.125, 100: 0.375}
    for value, share in expected.items():
        assert abs(shares[value] - share) < 0.05
    values = np.ravel(
        run(lambda x: OURS.rand_augment.apply_rand_augment(adds, x, n=1, m=0), [level] * 900)
    )
    for value in (101, 103, 109):
        assert abs(np.mean(values == value) - 1 / 3) < 0.06


def test_whole_policies():
    auto, rand = OURS.auto_augment, OURS.rand_augment
    for graph in (
        lambda x: auto.auto_augment(x, "reduced_image_net"),
        lambda x: auto.auto_augment(x, "reduced_cifar10", max_translate_abs=9, seed=3),
        lambda x: auto.auto_augment(x, shape=x.shape(), max_translate_rel=0.5),
        lambda x: rand.rand_augment(x, 2, 9, shape=x.shape(), monotonic_mag=False, fill_value=None),
        lambda x: OURS.trivial_augment.trivial_augment_wide(x, 5, excluded=["rotate"]),
    ):
        one, two = (run(graph, IMAGES, threads, iterations=3) for threads in (1, 2))
        assert [each.shape for each in one] == [each.shape for each in IMAGES * 3]
        for first, second in zip(one, two, strict=True):
            np.testing.assert_array_equal(first, second)
        assert any(not np.array_equal(a, b) for a, b in zip(one, IMAGES * 3, strict=True))


@pytest.mark.parametrize(
    "graph",
    [
        lambda a, x: a.auto_augment.auto_augment(x, "nonsense"),
        lambda a, x: a.auto_augment.auto_augment(x, "reduced_image_net", shape=(3, 4)),
        lambda a, x: a.auto_augment.auto_augment(x, shape=(3, 4), max_translate_abs=3),
        lambda a, x: a.auto_augment.auto_augment(x, max_translate_rel=0.3),
        lambda a, x: a.rand_augment.rand_augment(x, n=-1, m=3),
        lambda a, x: a.rand_augment.rand_augment(x, n=1, m=31),
        lambda a, x: a.rand_augment.rand_augment(x, n=1, m=0, num_magnitude_bins=0),
        lambda a, x: a.rand_augment.rand_augment(x, n=1, m=0, excluded=["nonsense"]),
        lambda a, x: a.rand_augment.apply_rand_augment([], x, n=1, m=0),
        lambda a, x: a.augmentations.rotate(x, magnitude_bin=3),
        lambda a, x: a.augmentations.invert(x, nonsense=3),
        lambda a, x: a.augmentations.translate_x(x, magnitude_bin=1, num_magnitude_bins=3),
        lambda a, x: a.core.augmentation(a.augmentations.rotate),
        lambda a, x: a.core.augmentation(lambda data: data),
        lambda a, x: a.core.Policy("p", 3, [[(a.augmentations.invert, 1.5, None)]]),
        lambda a, x: a.core.Policy("p", 3, [[(a.augmentations.rotate, 0.5, None)]]),
        lambda a, x: a.core.Policy("p", 3, [[(a.augmentations.rotate, 0.5, 3)]]),
    ],
    ids=map(str, range(17)),
)
def test_wrong_arguments(graph):
    with pytest.raises(Exception):  # noqa: B017 - whatever DALI raises
        graph(THEIRS, None)
    with Pipeline(batch_size=1, num_threads=1, device_id=None), pytest.raises(HeadraceError):
        graph(OURS, fn.external_source(lambda: IMAGES[:1], layout="HWC"))
