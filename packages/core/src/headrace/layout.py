"""Layout strings: one letter an axis, such as ``"HWC"`` (height, width, channel).

``F`` is the frame axis of a sequence, ``D`` depth, ``N`` the batch axis of a dense tensor.
An empty string means that nothing is known about the axes.
"""

from __future__ import annotations

from headrace.errors import ArgumentValueError, LayoutError


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


def axes_of(layout: str, letters: str) -> tuple[int, ...]:
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
                f'`axis_names`="{letters}" names axis "{letter}", which does not occur '
                f'in the layout "{layout}".'
            )
        found.append(position)
    return tuple(found)
