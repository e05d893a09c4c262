"""Errors of `auto_aug` say what DALI's say in the words that programs search their texts for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tests.parity.outcomes import DALI, HEADRACE, Library, assert_same, attempt
from tests.parity.words import Rows, Scenario, check_words, conditional


def auto_aug(lib: Library, name: str) -> Any:
    return importlib.import_module(f"{lib.module.__name__}.auto_aug.{name}")


def augmented(call: Callable[[Library, Any], Any]) -> Scenario:
    """A pipeline whose definition is `call`, of the library and an empty image."""
    return lambda lib: conditional(
        lib, lambda: call(lib, lib.types.Constant(np.zeros((0, 0, 1), np.uint8)))
    )


def decorated(function: Callable[..., Any], **settings: Any) -> Scenario:
    return lambda lib: auto_aug(lib, "core").augmentation(function, **settings)


def policy(*steps: Any, bins: Any = 11) -> Scenario:
    """A policy of one sub policy, in whose steps ``"aug"`` stands for an augmentation."""

    def scenario(lib: Library) -> None:
        known = auto_aug(lib, "augmentations").brightness
        given = [tuple(known if part == "aug" else part for part in step) for step in steps]
        auto_aug(lib, "core").Policy("P", num_magnitude_bins=bins, sub_policies=[given])

    return scenario


def with_param(make: Callable[[Library, float], Any]) -> Scenario:
    """An augmentation whose parameter `make` makes of a magnitude for each sample."""

    def call(lib: Library, image: Any) -> Any:
        augment = auto_aug(lib, "core").augmentation(
            lambda data, param: param, mag_range=(0, 10), mag_to_param=lambda m: make(lib, m)
        )
        bins = lib.fn.external_source(lambda info: np.int32(info.idx_in_batch), batch=False)
        return augment(image, magnitude_bin=bins, num_magnitude_bins=11)

    return augmented(call)


AUTO_AUG: Rows = [
    (decorated(lambda: None), "accepts 0 positional argument(s), but the functions decorated"),
    (decorated(lambda data: None), "accepts 1 positional argument(s), but the functions decorated"),
    (
        lambda lib: auto_aug(lib, "core").augmentation(auto_aug(lib, "augmentations").color),
        "the `@augmentation` was applied to already decorated augmentation.",
    ),
    (policy(("aug", 1, 11)), "range. got `11`"),
    (policy(("aug", 1, None)), "the magnitude bin is required"),
    (
        lambda lib: auto_aug(lib, "core").Policy("P", num_magnitude_bins=3, sub_policies=[3]),
        "each sub policy must be a list or tuple",
    ),
    (
        augmented(
            lambda lib, x: auto_aug(lib, "auto_augment").apply_auto_augment(
                auto_aug(lib, "core").Policy("P", 9, []), x
            )
        ),
        "cannot run empty policy. got policy(name='p', num_magnitude_bins=9, sub_policies=[]",
    ),
    (
        augmented(
            lambda lib, x: auto_aug(lib, "trivial_augment").apply_trivial_augment(
                [auto_aug(lib, "augmentations").translate_x], x
            )
        ),
        "provide it as `shape` argument to",
    ),
    (
        lambda lib: auto_aug(lib, "core._args").forbid_unused_kwargs(
            [auto_aug(lib, "augmentations").rotate], {"one": 1, "two": 2}, "here"
        ),
        "the kwargs `one, two` are not used by any of the augmentations.",
    ),
    (policy(bins=0.5), "the `num_magnitude_bins` must be a positive integer, got 0.5."),
    (policy(("aug", 1)), "must be specified as a triple"),
    (policy(("other", 1, 1)), "must be an instance of augmentation"),
    (policy(("aug", 1.5, 1)), "must be a number from `[0, 1]`"),
    (
        lambda lib: auto_aug(lib, "core").Policy("P", num_magnitude_bins=3, sub_policies="x"),
        "the `sub_policies` must be a list or tuple of sub policies",
    ),
    (
        augmented(lambda lib, x: auto_aug(lib, "rand_augment").rand_augment(x, n=None, m=1)),
        "the number of operations to apply `n` must be a non-negative integer",
    ),
    (
        augmented(
            lambda lib, x: auto_aug(lib, "rand_augment").rand_augment(
                x, n=1, m=15, num_magnitude_bins=15
            )
        ),
        "`m` must be an integer from `[0, 14]` range. got 15.",
    ),
    (
        augmented(
            lambda lib, x: auto_aug(lib, "trivial_augment").apply_trivial_augment(
                [auto_aug(lib, "augmentations").color], x, shhape=1
            )
        ),
        "the kwarg `shhape` is not used by any of the",
    ),
    (
        augmented(lambda lib, x: auto_aug(lib, "trivial_augment").apply_trivial_augment([], x)),
        "list cannot be empty",
    ),
    (
        augmented(
            lambda lib, x: auto_aug(lib, "core").augmentation(lambda data, p, one, two: data)(x)
        ),
        "not provided to the call: one, two",
    ),
    (
        with_param(lambda lib, m: lib.fn.transforms.shear(shear=[m, m])),
        "callback must return parameter that is `np.ndarray` or",
    ),
    (
        with_param(lambda lib, m: np.zeros(2 if m < 5 else 3, np.uint8)),
        "has shape (3,) and type uint8.",
    ),
]


def test_both_say_it():
    check_words(AUTO_AUG)


def test_settings_of_augmentations_go_back_to_their_defaults():
    given = {
        "mag_range": (0, 10),
        "randomly_negate": True,
        "mag_to_param": abs,
        "param_device": "gpu",
        "name": "another",
    }

    def scenario(lib):
        augment = auto_aug(lib, "core").augmentation(lambda data, param: data, **given)
        made = [augment.augmentation(**{name: None}) for name in given]
        values = [[getattr(each, name) for name in given] for each in made]
        return [[np.array(v(-3.0)) if callable(v) else v for v in each] for each in values]

    assert_same(scenario)


def test_warnings():
    def given(lib, magnitude_bin):
        return auto_aug(lib, "augmentations").rotate(
            lib.types.Constant(np.zeros((2, 2, 1), np.uint8), device="cpu"),
            magnitude_bin=magnitude_bin,
            num_magnitude_bins=9,
        )

    def policy_of(lib, name, *step):
        known = auto_aug(lib, "augmentations")
        auto_aug(lib, "core").Policy("P", 9, [[(getattr(known, name), *step)]])

    for words, call in (
        ("unsigned `magnitude_bin` was passed", lambda lib: lib.pipe(lambda: given(lib, 3)).run()),
        ("probability 0 in one of the sub-policies", lambda lib: policy_of(lib, "rotate", 0.0, 3)),
        ("does not accept magnitudes", lambda lib: policy_of(lib, "invert", 1.0, 3)),
    ):
        for lib in (DALI, HEADRACE):
            with pytest.warns(Warning, match=words):
                call(lib)


def test_magnitudes_and_what_policies_are_made_of():
    def scenario(lib):
        core, known = auto_aug(lib, "core"), auto_aug(lib, "augmentations")
        every = core.augmentation(lambda data, param: param, mag_range=np.int32([1, 1, 2, 3, 5]))
        node = lib.types.Constant(1)

        def define():
            bins = lib.fn.external_source(lambda: np.int32([4, 1]))
            return every(node, magnitude_bin=4), every(node, magnitude_bin=bins)

        steps = [[(known.rotate.augmentation(mag_range=(0, k)), 0.5, 1)] for k in range(1, 12)]
        steps.append([(known.invert, 0.5, None)])
        many = core.Policy("P", 9, steps)
        policy = auto_aug(lib, "auto_augment").get_svhn_policy()
        places, lists = auto_aug(lib, "auto_augment")._sub_policy_to_augmentation_matrix_map(policy)
        chosen = [[lists[k][place].name for k, place in enumerate(row)] for row in places]
        get_translations = auto_aug(lib, "rand_augment")._get_translations
        moved = get_translations(False, 100, 0.4, max_translate_abs=[30, 40])
        return (
            lib.pipe(define).run(),
            [each[0][0].name for each in many.sub_policies],
            chosen,
            [(each.name, each.mag_range, each._get_magnitudes(3)) for each in moved],
            known.posterize._map_mags_to_params(known.posterize._get_magnitudes(4)),
            attempt(every, node, magnitude_bin=5),
        )

    assert_same(scenario)
