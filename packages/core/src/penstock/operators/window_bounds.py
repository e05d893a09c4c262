"""What happens to windows that leave the data: `out_of_bounds_policy` and `fill_values`."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from penstock.errors import ArgumentValueError, OutOfRangeError, ShapeError
from penstock.operators.argument_types import FloatListArg, StringArg
from penstock.operators.schema import Arg
from penstock.operators.window_arithmetic import as_float32

if TYPE_CHECKING:
    from penstock.operators.operator import Operator

_POLICIES = {
    "error": "error",
    "constant": "constant",
    "pad": "constant",
    "edge": "edge",
    "clamp": "edge",
    "reflect": "reflect_1001",
    "reflect_1001": "reflect_1001",
    "reflect_101": "reflect_101",
    "wrap": "wrap",
    "trim_to_shape": "trim_to_shape",
}

OUT_OF_BOUNDS_ARGS: tuple[Arg, ...] = (
    Arg(
        "out_of_bounds_policy",
        StringArg,
        "error",
        'What happens where the window leaves the data: ``"error"`` raises; ``"constant"`` (or '
        '``"pad"``) fills with `fill_values`; ``"edge"`` (or ``"clamp"``) repeats the outermost '
        'values; ``"reflect_1001"`` (or ``"reflect"``) mirrors with and ``"reflect_101"`` without '
        'the outermost value; ``"wrap"`` repeats the data; ``"trim_to_shape"`` shrinks the window.',
        choices=tuple(_POLICIES),
    ),
    Arg(
        "fill_values",
        FloatListArg,
        (0.0,),
        'Value outside of the data with policy ``"constant"``: one for all, or one a channel.',
    ),
)


class OutOfBounds:
    """What is done with windows that leave the data: the arguments of `OUT_OF_BOUNDS_ARGS`.

    Attributes
    ----------
    policy
        ``"error"``, ``"constant"``, ``"edge"``, ``"reflect_1001"``, ``"reflect_101"``, ``"wrap"``
        or ``"trim_to_shape"``: the argument with its aliases resolved.
    fill
        Fill values: one, or one a channel.
    """

    __slots__ = ("fill", "policy")

    def __init__(self, op: Operator) -> None:
        given = op.args.out_of_bounds_policy
        if given not in _POLICIES:
            allowed = ", ".join(f'"{name}"' for name in _POLICIES)
            raise ArgumentValueError(
                f'`out_of_bounds_policy` must be one of {allowed}, got "{given}".'
            )
        self.policy = _POLICIES[given]
        self.fill = tuple(map(as_float32, op.args.fill_values)) or (0.0,)

    def settle(
        self, anchor: tuple[int, ...], shape: tuple[int, ...], extents: Sequence[int]
    ) -> tuple[tuple[int, ...], tuple[int, ...], bool]:
        """The window after the policy, and whether it now lies inside of the data.

        Where it does not, the pixels outside are to be made up according to `policy`.

        Raises
        ------
        OutOfRangeError
            If the window leaves the data and the policy is ``"error"``.
        """
        for a, s, extent in zip(anchor, shape, extents, strict=True):
            if a < 0 or a + s > extent:
                break
        else:
            return anchor, shape, True
        if self.policy == "trim_to_shape":
            first = [min(max(a, 0), e) for a, e in zip(anchor, extents, strict=True)]
            last = [min(max(a + s, 0), e) for a, s, e in zip(anchor, shape, extents, strict=True)]
            return (
                tuple(first),
                tuple([b - a for a, b in zip(first, last, strict=True)]),
                True,
            )
        if self.policy == "error":
            raise OutOfRangeError(
                f"The window leaves the data: anchor {anchor}, window shape {shape}, data shape "
                f"{tuple(extents)}. Make it smaller or choose another `out_of_bounds_policy` "
                '("pad", "trim_to_shape", ...).'
            )
        if self.policy != "constant" and 0 in extents and 0 not in shape:
            raise ShapeError(
                f"The data is empty (shape {tuple(extents)}), so there is nothing that "
                f'`out_of_bounds_policy="{self.policy}"` could repeat; use "constant".'
            )
        return anchor, shape, False
