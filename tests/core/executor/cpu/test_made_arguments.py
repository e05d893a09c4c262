"""Arguments that operators of the same program make, which no plan can look at ahead."""

from __future__ import annotations

import numpy as np
import pytest

from headrace import Pipeline, fn, types

COUNT = 6
IMAGES = [np.random.default_rng(k).integers(0, 256, (12, 17, 3), np.uint8) for k in range(COUNT)]
PAIRS = [np.float32([0.1 + 0.05 * k, 0.3]) for k in range(COUNT)]
FLAGS = [np.int32(k % 2) for k in range(COUNT)]

OPERATORS = {
    "slice by fractions": lambda x, pair, flag: fn.slice(
        x, rel_start=pair, rel_shape=pair, axis_names="WH"
    ),
    "slice by numbers": lambda x, pair, flag: fn.slice(
        x, start=fn.stack(flag, flag), end=[9, 9], axes=[0, 1]
    ),
    "crop": lambda x, pair, flag: fn.crop(x, crop=(5, 4), crop_pos_x=pair[0], crop_pos_y=pair[1]),
    "flip": lambda x, pair, flag: fn.flip(x, horizontal=flag, vertical=flag),
    "crop_mirror_normalize": lambda x, pair, flag: fn.crop_mirror_normalize(
        x, crop=(5, 4), crop_pos_x=pair[0], mirror=flag
    ),
    "resize": lambda x, pair, flag: fn.resize(x, size=pair * 30),
    "hsv": lambda x, pair, flag: fn.hsv(x, hue=pair[0], saturation=pair[1]),
}


def run(operator, *, ahead):
    """The samples of one batch, with arguments from outside (`ahead`) or made out of others."""
    pipe = Pipeline(COUNT, 1, None, prefetch_queue_depth=1)
    with pipe:
        data = fn.external_source(source=lambda: IMAGES, layout="HWC")
        pairs = fn.external_source(source=lambda: PAIRS)
        flags = fn.external_source(source=lambda: FLAGS)
        if not ahead:
            pairs, flags = pairs + 0, fn.cast(flags + 0, dtype=types.INT32)
        pipe.set_outputs(operator(data, pairs, flags))
    return [np.array(o.at(k)) for o in (pipe.run()[0], pipe.run()[0]) for k in range(COUNT)]


@pytest.mark.usefixtures("carried")
@pytest.mark.parametrize("name", OPERATORS)
def test_they_are_as_those_from_outside(name):
    wanted = run(OPERATORS[name], ahead=True)
    for one, other in zip(run(OPERATORS[name], ahead=False), wanted, strict=True):
        np.testing.assert_array_equal(one, other)
