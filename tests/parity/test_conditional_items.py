"""Items and attributes that branches assign, whatever their keys are."""

from __future__ import annotations

import numpy as np
import pytest

from tests.parity.outcomes import DALI, HEADRACE, Table, assert_differs, assert_same

same = Table()
"""Definitions that give the same: functions of the library, of `x`, numbers 0 to 3, and of a list
of three nodes."""
refused = Table()
"""Definitions that both libraries refuse, with errors of one builtin class."""
MORE = {}
"""Definitions that DALI refuses or gets wrong, with its error, if any, and right values."""


class Holder:
    """Something with attributes."""


def more(*values, error=None):
    def add(function):
        MORE[function.__name__] = (function, error, [list(map(int, v)) for v in values])
        return function

    return add


def scenario(define):
    def run(lib):
        def graph():
            x = lib.fn.external_source(lambda: [np.int32(v) for v in range(4)])
            return define(lib, x, [x * 10 + k for k in range(3)])

        return lib.pipe(graph, 4, enable_conditionals=True).run()

    return run


@pytest.mark.parametrize("name", same)
def test_same(name):
    assert_same(scenario(same[name]))


@pytest.mark.parametrize("name", refused)
def test_refused(name):
    assert_same(scenario(refused[name]))


@pytest.mark.parametrize("name", MORE)
def test_more_than_dali(name):
    define, error, values = MORE[name]

    def run(lib):
        return [[np.asarray(b.at(i)).item() for i in range(4)] for b in scenario(define)(lib)]

    if error is not None:
        assert_differs(run, error, values)
    else:
        assert run(HEADRACE) == values
        assert run(DALI) != values


@same
def in_a_loop(lib, x, images):
    for i in range(3):
        if x > i:
            images[i] = images[i] + 100
    return tuple(images)


@same
def in_both_branches(lib, x, images):
    for i in range(3):
        if x > 1:
            images[i] = images[i] + 100
        else:
            images[i] = images[i] - 1
    return tuple(images)


@same
def augmented(lib, x, images):
    for i in range(3):
        if x > 1:
            images[i] += 100
        else:
            images[i] -= i
    return tuple(images)


@same
def keys_of_a_dictionary(lib, x, images):
    a, b, c = images
    found = {"a": a, "b": b, "c": c}
    for key in found:
        if x > 1:
            found[key] = found[key] * 2
    return found["a"], found["b"], found["c"]


@same
def new_keys(lib, x, images):
    found = {}
    for key, image in zip("abc", images):  # noqa: B905 # DALI's takes no `strict`
        if x > 1:
            found[key] = image * 2
        else:
            found[key] = image
    return found["a"], found["b"], found["c"]


@same
def items_of_items(lib, x, images):
    a, b, c = images
    rows = [[a, b], [c, a]]
    for i in range(2):
        for j in range(2):
            if x > 1:
                rows[i][j] = rows[i][j] + 10 * i + j
    return (*rows[0], *rows[1])


@same
def attributes_of_items(lib, x, images):
    holders = [Holder(), Holder()]
    holders[0].v, holders[1].v = images[:2]
    for i in range(2):
        if x > 1:
            holders[i].v = holders[i].v * 3
    return holders[0].v, holders[1].v


@same
def items_of_attributes(lib, x, images):
    holder = Holder()
    holder.v = images
    for i in range(3):
        if x > 1:
            holder.v[i] = holder.v[i] * 3
        elif x > 0:
            holder.v[i] = -holder.v[i]
    return tuple(holder.v)


@same
def an_augmented_attribute(lib, x, images):
    holder = Holder()
    holder.n = images[0]
    for _ in range(2):
        if x > 1:
            holder.n += 1
        else:
            holder.n -= 1
    return holder.n


@same
def items_that_change_places(lib, x, images):
    i, j = 0, 1
    if x > 1:
        images[i], images[j] = images[j], images[i]
    return tuple(images)


@same
def numbers(lib, x, images):
    found, i = [images[0], 0], 1
    if x > 1:
        found[i] = 5
    else:
        found[i] = 7
    return tuple(found)


@same
def nested_conditions(lib, x, images):
    for i in range(3):
        if x > 0:
            if x > 1:
                images[i] = images[i] * 2
            else:
                images[i] = -images[i]
    return tuple(images)


@same
def in_a_function(lib, x, images):
    def change(images, i):
        if x > 1:
            images[i] = images[i] * 7

    for i in range(3):
        change(images, i)
    return tuple(images)


@same
def a_list_of_the_branch(lib, x, images):
    k = 1
    if x > 1:
        images = list(images)
        images[k] = images[k] * 9
    return tuple(images)


@same
def another_name_of_the_list(lib, x, images):
    other, k = images, 1
    if x > 1:
        other[k] = images[k] * 9
    return tuple(images)


@same
def target_of_a_loop(lib, x, images):
    others = images[1:]
    if x > 1:
        for images[0] in others:
            pass
    return tuple(images)


@same
def numbers_of_numpy_as_keys(lib, x, images):
    for i in np.arange(3):
        if x > 1:
            images[i] = images[i] + 100
    return tuple(images)


@same
def a_new_list_with_an_item(lib, x, images):
    a, b, _ = images
    found, i = {"list": [a, b]}, 0
    if x > 1:
        found["list"] = [b, a]
        found["list"][i] = found["list"][i] + 1
    return tuple(found["list"])


@same
def keys_from_a_list(lib, x, images):
    found, path = {"k": {"z": images[0]}}, ["k", "z"]
    if x > 1:
        found[path[0]][path[1]] = found[path[0]][path[1]] + 3
    return found["k"]["z"]


@same
def a_comprehension(lib, x, images):
    if x > 1:
        images = [image + 1 for image in images]
    return tuple(images)


@same
def read_in_a_later_condition(lib, x, images):
    for i in range(3):
        if x > 1:
            images[i] = images[i] * 2
    for i in range(3):
        if images[i] > 20:
            images[i] = images[i] - 1
    return tuple(images)


@same
def counts(lib, x, images):
    """A plain number that both branches change alike."""
    count, name = {"n": 0}, "n"
    if x > 1:
        count[name] += 1
    else:
        count[name] += 1
    return x + count[name]


@refused
def in_one_branch_only(lib, x, images):
    found = {}
    for key in "ab":
        if x > 1:
            found[key] = images[0]
    return found["a"]


@refused
def deleted_in_one_branch(lib, x, images):
    found, key = {"a": images[0], "b": images[1]}, "a"
    if x > 1:
        del found[key]
    return found["b"]


@refused
def data_as_a_key(lib, x, images):
    if x > 1:
        images[x] = images[0]
    return tuple(images)


@refused
def what_cannot_be_merged(lib, x, images):
    names, k = ["a"], 0
    if x > 1:
        names[k] = "b"
    return x, len(names[k])


@more([0, 10, 20, 30], [1, 11, 26, 36], [2, 12, 22, 32], error=RuntimeError)
def keys_that_are_computed(lib, x, images):
    n = 0
    if x > 1:
        images[n + 1] = images[n + 1] + 5
    return tuple(images)


@more([0, 10, 20, 30], [1, 11, 21, 31], [2, 12, 27, 37], error=RuntimeError)
def negative_keys(lib, x, images):
    if x > 1:
        images[-1] = images[-1] + 5
    return tuple(images)


@more([0, 10, 60, 90], [1, 11, 63, 93], error=RuntimeError)
def tuples_as_keys(lib, x, images):
    found = {(0, 1): images[0], (1, 0): images[1]}
    for i in range(2):
        if x > 1:
            found[i, 1 - i] = found[i, 1 - i] * 3
    return found[0, 1], found[1, 0]


@more([0, 10, 210, 310], [1, 11, 200, 300], [2, 12, 22, 32], error=RuntimeError)
def slices(lib, x, images):
    a, b, _ = images
    if x > 1:
        images[0:2] = [b * 10, a * 10]
    return tuple(images)


@more([0, 10, 20, 30], [0, 10, 22, 32], [0, 10, 24, 34], error=ValueError)
def loops_in_branches(lib, x, images):
    if x > 1:
        for i in range(3):
            images[i] = images[i] + i
    else:
        for i, image in enumerate(images):
            images[i] = image - i
    return tuple(images)


@more([0, 10, 21, 31], [1, 11, 23, 33], [2, 12, 22, 32], error=ValueError)
def a_key_that_changes(lib, x, images):
    i = 0
    if x > 1:
        images[i] = images[i] + 1
        i = 1
        images[i] = images[i] + 2
    return tuple(images)


@more([1, 20, 20, 30], [2, 22, 20, 30], [3, 24, 20, 30])
def several_keys_in_a_chain(lib, x, images):
    """DALI gives other numbers without a word."""
    for i in range(3):
        if x == 0:
            images[i] = images[i] + 1
        elif x == 1:
            images[i] = images[i] * 2
        else:
            images[(i + 1) % 3] = images[i]
    return tuple(images)


@more([0, 10, 21, 31], [1, 11, 22, 32])
def keys_of_a_list_in_another(lib, x, images):
    """The one list is changed in one branch, and replaced in the other."""
    found, i = {"list": images[:2]}, 0
    kept = found["list"]
    if x > 1:
        found[("list", "")[i]] = [images[1], images[2]]
    else:
        for i in range(2):
            kept[i] = kept[i] + 0
    return tuple(found["list"])
