"""Random operators of programs with conditions get DALI's seeds: their order is DALI's."""

from __future__ import annotations

import numpy as np
import nvidia.dali
import nvidia.dali.fn
import nvidia.dali.types
import pytest

import headrace
import headrace.fn
import headrace.types
from tests.support.images import class_folders


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    root = tmp_path_factory.mktemp("classes")
    class_folders(root, 24, height=8, width=8)
    return str(root)


def labels(lib, folder):
    return lib.fn.readers.file(file_root=folder, random_shuffle=True, initial_fill=9)[1][0]


def coin(lib):
    return lib.fn.random.coin_flip(dtype=lib.types.BOOL)


def number(lib, low=0):
    return lib.fn.random.uniform(range=(low, low + 100), dtype=lib.types.INT32)


def two_readers(lib, folder):
    one, other = labels(lib, folder), labels(lib, folder)
    if coin(lib):
        found = one
    else:
        found = other + 10
    return found


def the_condition_first(lib, folder):
    flag = coin(lib)
    one, other = number(lib), number(lib)
    if flag:
        found = other
    else:
        found = one + 1000
    return found, flag, one, other


def draws_within(lib, folder):
    data = number(lib)
    if coin(lib):
        data = data * 1000 + number(lib)
    else:
        data = data * 1000 + number(lib, 200)
    return data


def nested(lib, folder):
    data, more = number(lib), number(lib)
    if coin(lib):
        if coin(lib):
            data = more + number(lib, 1000)
        else:
            data = data * 2
    else:
        if number(lib) > 50:
            data = more * 3
        else:
            data = data + number(lib)
    return data, more


def chained(lib, folder):
    draw = number(lib)
    if draw > 70:
        data = number(lib)
    elif draw > 40:
        data = labels(lib, folder) + 1000
    else:
        data = number(lib, 3000)
    return data, draw


def joined(lib, folder):
    data = number(lib)
    if coin(lib) and not number(lib) > 50:
        data = data + 1000
    elif coin(lib) or number(lib) > 30:
        data = data + 2000
    return data


def several_variables(lib, folder):
    one, other = number(lib), number(lib)
    first, second = labels(lib, folder), labels(lib, folder)
    if coin(lib):
        one, first = other, second
    else:
        other = second + 1000
    return first, other, one


def one_after_the_other(lib, folder):
    data, more = number(lib), number(lib)
    if coin(lib):
        data = more
    if coin(lib):
        more = data + number(lib, 1000)
    return more, data


def arguments(lib, folder):
    data = lib.fn.random.uniform(range=(0, 1), shape=(6, 6, 1))
    data = lib.fn.reshape(data, layout="HWC")
    angle = lib.fn.random.uniform(range=(-40, 40))
    fill = lib.fn.random.uniform(range=(2, 3))
    if coin(lib):
        data = lib.fn.rotate(data, angle=angle, size=(6, 6), fill_value=5.0)
        data = data * fill
    return data


PROGRAMS = (
    two_readers,
    the_condition_first,
    draws_within,
    nested,
    chained,
    joined,
    several_variables,
    one_after_the_other,
    arguments,
)


@pytest.mark.parametrize("program", PROGRAMS, ids=lambda program: program.__name__)
def test_values(folder, program):
    found = []
    for lib in (nvidia.dali, headrace):
        make = lib.pipeline_def(program, enable_conditionals=True)
        pipe = make(lib, folder, batch_size=7, num_threads=1, device_id=None, seed=8)
        pipe.build()
        found.append(
            [
                [[np.array(output.at(i)) for i in range(7)] for output in pipe.run()]
                for _ in range(3)
            ]
        )
    for want, got in zip(*found, strict=True):
        for a, b in zip(want, got, strict=True):
            np.testing.assert_allclose(np.array(b), np.array(a), rtol=1e-5, atol=1e-5)
