"""AutoAugment (https://arxiv.org/abs/1805.09501)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from headrace import fn, types
from headrace.auto_aug import augmentations as a
from headrace.auto_aug._policies import STEPS
from headrace.auto_aug.core import Augmentation, Policy, select, signed_bin
from headrace.auto_aug.core._args import accepted, forbid_unused_kwargs, require_kwargs
from headrace.auto_aug.core._utils import drawn, warp_arguments
from headrace.auto_aug.core._utils import get_translations as _get_translations
from headrace.auto_aug.rand_augment import enhancements
from headrace.errors import ArgumentValueError
from headrace.graph.data_node import DataNode
from headrace.types import DALIInterpType

_BINS = 11


def auto_augment(
    data: DataNode,
    policy_name: str = "image_net",
    shape: DataNode | tuple[int, int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | None = None,
    max_translate_rel: float | None = None,
    seed: int | None = None,
) -> DataNode:
    """Apply a sub-policy, drawn for each sample, of a policy of the paper.

    Parameters
    ----------
    data
        uint8 images (HWC) or sequences of them (FHWC).
    policy_name
        ``"image_net"``, ``"reduced_image_net"``, ``"svhn"`` or ``"reduced_cifar10"``.
    shape
        Height and width of the images, for all or for each: then translations are shares of it.
    fill_value
        Value of pixels from outside of the images; their outermost pixels if `None`.
    interp_type
        Interpolation of what moves pixels.
    max_translate_abs, max_translate_rel
        Longest translations, in pixels (250 when not given), or shares where there is a `shape`.
    seed
        Of what is drawn.
    """
    if policy_name not in STEPS:
        raise ArgumentValueError(
            f'`policy_name` must be one of {", ".join(STEPS)}, got "{policy_name}".'
        )
    given = (shape is not None, max_translate_abs, max_translate_rel)
    if policy_name == "reduced_image_net":
        if given != (False, None, None):
            raise ArgumentValueError(
                'The policy "reduced_image_net" has no translations: leave out `shape`, '
                "`max_translate_abs` and `max_translate_rel`."
            )
        policy = get_reduced_image_net_policy()
    else:
        policy = _policy(policy_name, *given)
    kwargs = warp_arguments(shape, fill_value, interp_type)
    if not any(name.startswith("translate") for name in policy.augmentations):
        kwargs.pop("shape", None)
    return apply_auto_augment(policy, data, seed=seed, **kwargs)


def auto_augment_image_net(
    data: DataNode,
    shape: DataNode | tuple[int, int] | None = None,
    fill_value: int | None = 128,
    interp_type: DALIInterpType | None = None,
    max_translate_abs: int | None = None,
    max_translate_rel: float | None = None,
    seed: int | None = None,
) -> DataNode:
    """`auto_augment` with the policy ``"image_net"``."""
    return auto_augment(
        data,
        "image_net",
        shape,
        fill_value,
        interp_type,
        max_translate_abs,
        max_translate_rel,
        seed,
    )


def apply_auto_augment(
    policy: Policy, data: DataNode, seed: int | None = None, **kwargs: Any
) -> DataNode:
    """Apply a sub-policy of `policy`, drawn for each sample.

    Each of its augmentations is applied with its own probability. Further arguments are passed on
    to the augmentations that take them.
    """
    if not policy.sub_policies:
        raise ArgumentValueError(
            f"Cannot run empty policy. Got {policy} in `apply_auto_augment` call."
        )
    forbid_unused_kwargs(policy.augmentations.values(), kwargs, "apply_auto_augment")
    require_kwargs(policy.augmentations.values(), kwargs, "apply_auto_augment")
    own = (lambda number: None) if seed is None else (lambda number: seed + number)
    chosen = drawn(len(policy.sub_policies), seed, 0)
    places, augmentations = _sub_policy_to_augmentation_matrix_map(policy)
    for stage, (*ops, _) in enumerate(augmentations):
        steps = [each[stage] if stage < len(each) else None for each in policy.sub_policies]
        chances = [0.0 if step is None else step[1] for step in steps]
        bins = [0 if step is None else step[2] or 0 for step in steps]
        luck = fn.random.uniform(range=[0.0, 1.0], seed=own(3 * stage + 1))
        runs = luck < _looked_up(chances, np.float32, chosen)
        index = runs * _looked_up(places[:, stage] - len(ops), np.int32, chosen) + len(ops)
        magnitude: Any = _looked_up(bins, np.int32, chosen)
        if any(op.randomly_negate for op in ops):
            magnitude = signed_bin(magnitude, seed=own(3 * stage + 2))
        data = select(
            augmentations[stage],
            index,
            data,
            magnitude_bin=magnitude,
            num_magnitude_bins=policy.num_magnitude_bins,
            **_taken(ops, kwargs),
        )
    return data


def _sub_policy_to_augmentation_matrix_map(
    policy: Policy,
) -> tuple[np.ndarray, list[list[Augmentation]]]:
    """Return the index table of sub-policies, and the augmentations that each of their two stages
    uses.
    """
    count = max(map(len, policy.sub_policies))
    places = np.zeros((len(policy.sub_policies), count), np.int32)
    lists = []
    for stage in range(count):
        own = [each[stage][0] for each in policy.sub_policies if stage < len(each)]
        every = [*dict.fromkeys(op for op in own if op is not a.identity), a.identity]
        for row, each in enumerate(policy.sub_policies):
            op = each[stage][0] if stage < len(each) else a.identity
            places[row, stage] = every.index(op)
        lists.append(every)
    return places, lists


def _taken(ops: list[Any], kwargs: dict[str, Any]) -> dict[str, Any]:
    """Those arguments that an augmentation of this stage takes."""
    names = {name for op in ops for name in accepted(op.op)}
    return {key: value for key, value in kwargs.items() if key in names}


def _looked_up(values: Sequence[float] | np.ndarray, dtype: type, index: DataNode) -> DataNode:
    found: DataNode = fn.copy(types.Constant(np.array(values, dtype), device="cpu"))[index]
    return found


def _policy(
    name: str,
    use_shape: bool = False,
    max_translate_abs: int | None = None,
    max_translate_rel: float | None = None,
) -> Policy:
    plain = (a.auto_contrast, a.equalize, a.invert, a.posterize, a.rotate, a.shear_x, a.shear_y)
    every = [
        *_get_translations(use_shape, 250, 1.0, max_translate_abs, max_translate_rel),
        *enhancements(),
        *plain,
        a.solarize.augmentation(mag_range=(0, 256)),
        a.solarize_add,
    ]
    known = {each.name: each for each in every}
    sub_policies = []
    for line in STEPS[name].split("\n"):
        steps = [step.split() for step in line.split("/") if step.strip()]
        if steps:
            sub_policies.append(
                [(known[n], float(p), int(m[0]) if m else None) for n, p, *m in steps]
            )
    title = "".join(word.capitalize() for word in name.split("_"))
    return Policy(f"{title}Policy", _BINS, sub_policies)


def get_image_net_policy(
    use_shape: bool = False,
    max_translate_abs: int | None = None,
    max_translate_rel: float | None = None,
) -> Policy:
    """The policy found on ImageNet."""
    return _policy("image_net", use_shape, max_translate_abs, max_translate_rel)


def get_reduced_cifar10_policy(
    use_shape: bool = False,
    max_translate_abs: int | None = None,
    max_translate_rel: float | None = None,
) -> Policy:
    """The policy found on a part of CIFAR-10."""
    return _policy("reduced_cifar10", use_shape, max_translate_abs, max_translate_rel)


def get_svhn_policy(
    use_shape: bool = False,
    max_translate_abs: int | None = None,
    max_translate_rel: float | None = None,
) -> Policy:
    """The policy found on SVHN."""
    return _policy("svhn", use_shape, max_translate_abs, max_translate_rel)


def get_reduced_image_net_policy() -> Policy:
    """The policy found on a part of ImageNet, which has no translations."""
    return _policy("reduced_image_net")
