"""Layout strings: one letter an axis, such as ``"HWC"`` (height, width, channel).

``F`` is the frame axis of a sequence, ``D`` depth, ``N`` the batch axis of a dense tensor.
An empty string means that nothing is known about the axes.
"""

from __future__ import annotations

from penstock.errors import ArgumentValueError, LayoutError


def check_layout(layout: str, ndim: int) -> str:
    """Return `layout` if it can describe `ndim`-dimensional data.

    Raises
    ------
    LayoutError
        If the number of letters differs from `ndim`.
    """
    if layout and len(layout) != ndim:
        raise LayoutError(f'The layout "{layout}" cannot describe {ndim}-dimensional data.')
    return layout


def axis(layout: str, letter: str) -> int:
    """Position of axis `letter`, or -1."""
    return layout.find(letter)


def axes_of(layout: str, letters: str, *, what: str = "axis_names") -> tuple[int, ...]:
    """Positions of every axis in `letters`, in their order.

    Raises
    ------
    ArgumentValueError
        If a letter does not occur in `layout`.
    """
    found = []
    for letter in letters:
        position = layout.find(letter)
        if position < 0:
            raise ArgumentValueError(
                f'`{what}`="{letters}" names axis "{letter}", which does not occur '
                f'in the layout "{layout}".'
            )
        found.append(position)
    return tuple(found)


def permutation(source: str, target: str) -> tuple[int, ...]:
    """The permutation that turns data of layout `source` into layout `target`.

    Raises
    ------
    LayoutError
        If one is not a permutation of the other.
    """
    if sorted(source) != sorted(target):
        raise LayoutError(f'The layout "{target}" is not a permutation of "{source}".')
    return tuple(source.index(letter) for letter in target)


def without(layout: str, letter: str) -> str:
    """`layout` with axis `letter` removed."""
    return layout.replace(letter, "")
