"""Random chains of operators on images, for property tests."""

from __future__ import annotations

import hypothesis.strategies as st

from headrace import fn, types

INTERPOLATIONS = [types.INTERP_LINEAR, types.INTERP_CUBIC, types.INTERP_NN]


def _warped(x):
    angle = fn.random.uniform(range=(-40, 40))
    turn = fn.transforms.rotation(angle=angle, center=(20, 16))
    return fn.warp_affine(x, fn.transforms.scale(turn, scale=(1.2, 0.9)), fill_value=3)


@st.composite
def steps(draw):
    """A chain of operators on images, as functions of an edge; all draws are made here."""
    chain = []
    for _ in range(draw(st.integers(1, 4))):
        kinds = ["resize", "crop", "slice", "flip", "rrc", "contrast", "colour", "warp"]
        kind = draw(st.sampled_from(kinds))
        if kind == "resize":
            size = draw(st.tuples(st.integers(8, 48), st.integers(8, 48)))
            interp = draw(st.sampled_from(INTERPOLATIONS))
            antialias = draw(st.booleans())
            chain.append(
                lambda x, s=size, i=interp, a=antialias: fn.resize(
                    x, size=s, interp_type=i, antialias=a
                )
            )
        elif kind == "crop":
            position = draw(st.floats(0, 1))
            size = draw(st.tuples(st.integers(1, 8), st.integers(1, 8)))
            chain.append(
                lambda x, s=size, p=position: fn.crop(
                    x, crop=s, crop_pos_x=p, out_of_bounds_policy="pad"
                )
            )
        elif kind == "slice":
            start = draw(st.tuples(st.floats(0, 0.4), st.floats(0, 0.4)))
            chain.append(lambda x, s=start: fn.slice(x, rel_start=s, rel_shape=(0.5, 0.6)))
        elif kind == "flip":
            chain.append(lambda x: fn.flip(x, horizontal=fn.random.coin_flip(), vertical=1))
        elif kind == "warp":
            chain.append(_warped)
        elif kind == "rrc":
            chain.append(lambda x: fn.random_resized_crop(x, size=(20, 24)))
        elif kind == "colour":
            hue = draw(st.floats(-180, 180))
            chain.append(
                lambda x, h=hue: fn.color_twist(
                    x, hue=h, saturation=fn.random.uniform(range=(0.5, 1.5)), brightness=0.9
                )
            )
        else:
            chain.append(lambda x: fn.brightness_contrast(x, brightness=1.2, contrast=0.7))
    return chain
