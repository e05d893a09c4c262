"""Errors of `auto_aug` say what DALI's say in the words that programs search their texts for."""

from __future__ import annotations

import importlib
from collections.abc import Callable
from typing import Any

import numpy as np

from tests.parity.outcomes import Library, assert_same
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
    (policy(bins=0.5), "the `num_magnitude_bins` must be a positive integer, got 0.5."),
    (policy(("aug", 1)), "as a triple"),
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
