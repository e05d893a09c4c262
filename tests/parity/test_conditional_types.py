"""Types of what branches give are judged by who takes them, batch by batch, as DALI does."""

from __future__ import annotations

import functools

import numpy as np
import pytest

from tests.parity.outcomes import Table, assert_same

IMAGES = [np.arange(24, dtype=np.uint8).reshape(4, 2, 3) + k for k in range(4)]
ONE_CHANNEL = [np.ascontiguousarray(image[..., :1]) for image in IMAGES]
GREY = [np.ascontiguousarray(image[..., 0]) for image in IMAGES]
MIXED = [*ONE_CHANNEL[:2], *IMAGES[2:]]
NOBODY, EVERYBODY, SOME = [0] * 4, [1] * 4, [0, 1, 0, 1]

cases = Table()
"""Branches of other types or numbers of axes, or with operators that do not fit: functions of the
library, of images and of a number for each of them."""


@cases
def one_more_axis(lib, x, n):
    if x.shape().shape()[0] == 2:
        x = lib.fn.expand_dims(x, axes=[2])
    return x


@cases
def an_axis_fewer(lib, x, n):
    if x.shape()[-1] == 1:
        x = lib.fn.squeeze(x, axes=[1])
    return x


@cases
def an_operator_that_does_not_fit(lib, x, n):
    if n > 0:
        x = lib.fn.squeeze(x, axes=[1])
    return x


@cases
def another_type(lib, x, n):
    if n > 0:
        x = lib.fn.cast(x, dtype=lib.types.FLOAT)
    return lib.fn.copy(x)  # DALI's arithmetic takes later batches for the type of the first one


@cases
def another_layout(lib, x, n):
    if n > 0:
        x = lib.fn.reshape(x, layout="ABC")
    return x


@cases
def everything_differs(lib, x, n):
    if n > 0:
        if n > 1:
            y = lib.fn.cast(x, dtype=lib.types.INT64)
        else:
            y = lib.fn.reshape(x, shape=[-1])
    else:
        y = lib.fn.expand_dims(x, axes=[0])
    return lib.fn.cast(y, dtype=lib.types.INT32) + 1


@cases
def an_elif_chain(lib, x, n):
    if n == 0:
        x = x + 1.5
    elif n == 1:
        x = lib.fn.cast(x, dtype=lib.types.INT16)
    else:
        x = lib.fn.squeeze(x, axes=[0])
    return x, n


@cases
def a_right_side_that_does_not_fit(lib, x, n):
    if n == 0 or x[0, 0, 0, 0] > 3:
        x = x + 1
    return x


@cases
def a_condition_in_a_branch_that_is_no_number(lib, x, n):
    if n > 0:  # noqa: SIM102 # `and` takes other things
        if x:
            x = x + 1
    return x


@cases
def an_argument_that_does_not_fit(lib, x, n):
    if n > 0:
        x = lib.fn.crop(x, crop=(1, 1), crop_pos_x=lib.fn.stack(n, n) * 0.5)
    return x


@cases
def a_chain_behind_it(lib, x, n):
    y = x
    if n > 0:
        y = lib.fn.cast(lib.fn.squeeze(x, axes=[1]), dtype=lib.types.FLOAT) / 2
        y = lib.fn.pad(y)
    z = lib.fn.flip(lib.fn.reshape(y, layout="HWC"), horizontal=1)
    return z, lib.fn.cast(y, dtype=lib.types.FLOAT) + 1


@cases
def several_values(lib, x, n):
    if n > 0:
        a, b = lib.fn.cast(x, dtype=lib.types.FLOAT), n + 1
    else:
        a, b = x, n
    return a, b


@cases
def whole_batches(lib, x, n):
    if n > 0:
        x = lib.fn.pad(lib.fn.cast(x, dtype=lib.types.FLOAT), fill_value=1)
    else:
        x = lib.fn.pad(x, align=[5])
    return x


@cases
def draws(lib, x, n):
    y = lib.fn.random.uniform(range=[1, 1], seed=5)
    if n > 0:
        y = lib.fn.cast(lib.fn.random.coin_flip(probability=1.0, seed=3), dtype=lib.types.UINT8)
    return x, y


@cases
def a_user_s_function(lib, x, n):
    if n > 0:
        x = lib.fn.python_function(x, function=lambda a: a.astype(np.float32)[0])
    return x


@cases
def a_part_of_a_batch(lib, x, n):
    taken = n > 0
    part, other = lib.fn._conditional.split(x, predicate=taken)
    one, two = lib.fn.squeeze(part, axes=[1]), lib.fn.cast(other, dtype=lib.types.FLOAT)
    return lib.fn._conditional.merge(one, two, predicate=taken)


def outputs(name, images, iterations, layout, lib, **settings):
    """What the outputs are, iteration by iteration; `iterations` has the number of each image."""

    def define():
        x = lib.fn.external_source(lambda: images, layout=layout)
        n = lib.fn.external_source(source=iter([np.array(v, np.int32) for v in iterations]))
        return cases[name](lib, x, n)

    settings = {"prefetch_queue_depth": 1, "num_threads": 2, **settings}
    pipe = lib.pipe(define, 4, enable_conditionals=True, **settings)
    return [[(str(batch.dtype), batch.layout(), batch) for batch in pipe.run()] for _ in iterations]


@pytest.mark.sweep
@pytest.mark.parametrize(
    ("images", "layout"),
    [(IMAGES, "HWC"), (IMAGES, None), (ONE_CHANNEL, "HWC"), (GREY, None)],
    ids=["images", "no layout", "one channel", "grey"],
)
@pytest.mark.parametrize("name", cases)
def test_batch_by_batch(name, images, layout):
    for iterations in ([NOBODY], [EVERYBODY], [NOBODY, EVERYBODY, NOBODY], [SOME], [[2] * 4]):
        assert_same(functools.partial(outputs, *(name, images, iterations, layout)))


@pytest.mark.parametrize(
    "name", ["one_more_axis", "an_axis_fewer", "an_operator_that_does_not_fit"]
)
def test_images_of_several_kinds(name):
    for iterations in ([NOBODY], [EVERYBODY], [[1, 1, 0, 0]]):
        assert_same(functools.partial(outputs, *(name, MIXED, iterations, "HWC")))
    assert_same(functools.partial(outputs, *(name, IMAGES[:2] + GREY[2:], [NOBODY], None)))


@pytest.mark.parametrize(
    "settings",
    [
        {"fuse": False},
        {"workers": "processes"},
        {"prefetch_queue_depth": 3},
        {"on_bad_sample": "replace"},
    ],
    ids=lambda settings: next(iter(settings)),
)
def test_however_it_runs(settings):
    """What our own settings change beside, they do not change this."""
    for name in cases:
        if "workers" in settings and name == "a_user_s_function":
            continue  # which cannot be sent

        def either(lib, name=name):
            own = settings if lib.name == "headrace" or "prefetch_queue_depth" in settings else {}
            data = name, ONE_CHANNEL, [NOBODY, EVERYBODY, EVERYBODY], "HWC"
            return outputs(*data, lib, **own)

        assert_same(either)


def test_a_bad_argument_is_refused_whoever_takes_the_branch():
    def run(lib):
        def define():
            x = lib.fn.external_source(lambda: IMAGES, layout="HWC")
            if x.shape()[0] == 99:
                x = lib.fn.erase(x, anchor=[0], shape=[1], axes=[0], axis_names="H")
            return x

        return lib.pipe(define, 4, enable_conditionals=True).run()

    assert_same(run)
