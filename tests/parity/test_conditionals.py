"""Conditional execution: values, types and errors are DALI's; and what works here only."""

from __future__ import annotations

import functools
from typing import Any

import numpy as np
import pytest

from tests.parity.outcomes import Table, assert_differs, assert_same

same = Table()
"""Definitions that give the same: functions of the library and of `x`, int32 numbers 0 to 3."""
refused = Table()
"""Definitions that either library refuses, with errors of one builtin class."""


def scenario(define, **settings):
    """What a definition gives."""

    def run(lib):
        def graph():
            return define(lib, numbers(lib))

        return lib.pipe(graph, 4, enable_conditionals=True, **settings).run()

    return run


def numbers(lib, values=(0, 1, 2, 3), dtype=np.int32):
    return lib.fn.external_source(lambda: [dtype(v) for v in values])


@pytest.mark.parametrize("name", same)
def test_same(name):
    assert_same(scenario(same[name]))


@pytest.mark.parametrize("name", refused)
def test_refused(name):
    assert_same(scenario(refused[name]))


# Statements.


@same
def if_alone(lib, x):
    if x > 1:
        x = x + 100
    return x


@same
def if_and_else(lib, x):
    if x > 1:
        y = x * 10
    else:
        y = -x
    return y, x


@same
def elif_chain(lib, x):
    if x == 0:
        y = 7
    elif x == 1:
        y = x + 50
    elif x == 2:
        y = 9
    else:
        y = -1
    return y


@same
def nested(lib, x):
    y = x
    if x > 0:
        y = y + 1
        z = y * 2
        if y > 2:
            z = z + 100
            if y > 3:
                y = y - 50
    else:
        z = -x
    return y, z


@same
def nobody_takes_it(lib, x):
    if x > 100:
        x = lib.fn.cast(lib.fn.cast(x, dtype=lib.types.FLOAT) / 0, dtype=lib.types.INT32)
    return x


@same
def everybody_takes_it(lib, x):
    if x >= 0:
        x = x + 1
    else:
        x = x - 1
    return x


@same
def empty_body(lib, x):
    if x > 1:
        pass
    else:
        x = x - 50
    return x


@same
def before_and_in_one_branch(lib, x):
    y = 5
    if x > 1:
        y = 6
    return y


@same
def numbers_are_true_or_false(lib, x):
    y = 0
    if x:
        y = 1
    z = 0
    if lib.fn.cast(x, dtype=lib.types.FLOAT) - 1.0:
        z = 1
    return y, z


@same
def nan_is_true(lib, x):
    f = numbers(lib, (0.0, 0.5, float("nan"), -1.0), np.float32)
    y = 0
    if f:
        y = 1
    return y, not f


@same
def swap(lib, x):
    y = x + 10
    if x > 1:
        x, y = y, x
    return x, y


@same
def augmented_assignment(lib, x):
    p = x > 1
    p &= x > 2
    if p:
        x += 100
    return x


@same
def other_values_behind(lib, x):
    if x > 1:
        text = "many"
        found = None
    else:
        text = "few"
        found = x
    return x


@same
def loops_of_python(lib, x):
    for i in range(3):
        if x > i:
            x = x + i
    while True:
        if x > 2:
            x = x + 1000
        break
    return x


@same
def loop_within(lib, x):
    if x > 1:
        for i in range(3):
            x = x + i
    return x


@same
def continue_in_a_loop(lib, x):
    for i in range(3):
        if x == i:
            continue
        x = x + 10
    return x


@same
def returns_early(lib, x):
    if x % 2 == 0:
        return x
    x = x + 1
    return x * 10


@same
def returns_in_both(lib, x):
    if x > 1:
        return x, 1
    else:
        return 5, x


@same
def attributes(lib, x):
    class TensorHandle:
        pass

    a = TensorHandle()
    a.v = x
    a.inner = TensorHandle()
    a.inner.v = x
    if x > 1:
        a.v = a.v + 100
        a.inner.v = -x
    return a.v, a.inner.v


@same
def items(lib, x):
    a = {"v": x, "w": [x, x]}
    if x > 1:
        a["v"] = a["v"] + 100
        a["w"][1] = x * 7
    return a["v"], a["w"][1], a["w"][0]


@same
def lists_are_python(lib, x):
    seen = []
    if x > 1:
        seen.append(1)
    else:
        seen.append(2)
    return x, np.int32(seen)


@same
def nested_values(lib, x):
    if x > 1:
        y = {"a": x, "b": (x, [x, 2])}
    else:
        y = {"a": -x, "b": (1, [3, x])}
    return y["a"], y["b"][0], y["b"][1][0], y["b"][1][1]


@same
def python_conditions(lib, x):
    y = None
    if y is None and x is not None:
        y = x
    if y is not None and x > 1:
        y = y + 1
    if lib.types.Constant(1) and True:
        y = y + 10
    return y


@same
def constants(lib, x):
    if x > 1:
        a, b, c, d = np.float32([1, 2]), np.uint8(3), True, lib.types.Constant([1, 2])
    else:
        a, b, c, d = np.float32([3, 4]), np.uint8(4), False, lib.types.Constant([3, 4])
    return a, b, c, d


@same
def equal_constants(lib, x):
    if x > 1:
        y = 1
    else:
        y = 1
    return y, y + 1


# Expressions.


@same
def logic(lib, x):
    return (
        x > 0 and x < 3,
        x < 1 or x > 2,
        not x,
        not (x > 1),
        not x > 1 or x > 2,
        0 < x < 3,
        0 < x + 1 <= 2 < 3,
    )


@same
def logic_with_python(lib, x):
    return True and x > 1, x > 1 and False, x > 1 or True, False or x, True and x


@same
def logic_in_conditions(lib, x):
    if True and x > 1:
        x = x + 1
    if None or (x > 2 and not x == 3):
        x = x + 100
    return x


@same
def many_operands(lib, x):
    return (x > 0 and x > 1 and x > 2), (x == 0 or x == 1 or x == 2), (x > 2 or x > 0 and x < 2)


@same
def conditional_expression_of_python(lib, x):
    return x + 1 if x is not None else 5


@same
def comprehensions_and_lambdas(lib, x):
    both = lambda a, b: a and (b or a)  # noqa: E731
    found = [both(y, not y) for y in (x > 1, x > 2)]
    return (*found, *map(lambda y: y or False, found))


# Functions.


def helper(x, more=100, *, scale=1):
    if x > 1:
        x = x + more * scale
    return x


class Callable:
    def __init__(self, more):
        self.more = more

    def __call__(self, x):
        if x > 1:
            x = x + self.more
        return x

    def method(self, x):
        return x if x is None else self(x)

    @staticmethod
    def static(x):
        if x > 2:
            return x - 1
        return x

    @classmethod
    def of_class(cls, x):
        return cls.static(x)


class DerivedValue(Callable):
    def __call__(self, x):
        return super().__call__(x) + 1


def decorated(function):
    @functools.wraps(function)
    def wrapper(*args):
        return function(*args) + 1

    return wrapper


@decorated
def with_decorator(x):
    if x > 1:
        return x * 2
    return x


@same
def functions(lib, x):
    def inner(y):
        if y > 2:
            y = y + x
        return y

    return helper(x), helper(x, scale=2), inner(x), functools.partial(helper, more=3)(x)


@same
def methods(lib, x):
    c, d = Callable(5), DerivedValue(6)
    return c(x), c.method(x), Callable.static(x), d.of_class(x), d(x)


@same
def decorated_functions(lib, x):
    return with_decorator(x)


def recursive(x, depth):
    if depth == 0:
        return x
    if x > depth:
        x = x + 10
    return recursive(x, depth - 1)


@same
def recursion(lib, x):
    return recursive(x, 3)


# Operators.


@same
def operators_in_branches(lib, x):
    if x > 1:
        y = lib.fn.full(x, shape=[2])
    else:
        y = lib.fn.full(-x, shape=[3])
    return y, y.shape()


@same
def operators_without_inputs(lib, x):
    if x > 1:
        y = lib.fn.constant(idata=[1, 2])
    else:
        y = lib.fn.constant(idata=[3])
    return y


@same
def sources_in_branches(lib, x):
    y = x
    if x > 1:
        y = numbers(lib, (10, 11, 12, 13))
    return y


@same
def classes_of_operators(lib, x):
    cast = lib.ops.Cast(dtype=lib.types.FLOAT)
    if x > 1:
        y = cast(x)
    else:
        y = cast(-x)
    return y


@same
def arguments_of_either_side(lib, x):
    image = lib.fn.full(np.uint8(9), shape=[2, 3, 1])
    image = lib.fn.reshape(image, layout="HWC")
    width = lib.fn.cast(x, dtype=lib.types.FLOAT) + 1.0
    if x > 1:
        image = lib.fn.crop(image, crop_w=width - 1.0, crop_h=1)
    else:
        image = lib.fn.crop(image, crop_w=width, crop_h=2)
    return image


@same
def several_input_sets(lib, x):
    if x > 1:
        a = lib.fn.cast([x, x], dtype=lib.types.FLOAT)
    else:
        a = [1.0, 2.0]
    return tuple(a)


@same
def layouts(lib, x):
    y = lib.fn.reshape(lib.fn.full(x, shape=[2, 2]), layout="HW")
    if x > 1:
        y = y + 1
    return y


# Refused.


@refused
def breaks_in_a_loop(lib, x):
    for i in range(3):
        if x == i:
            break
        x = x + 10
    return x


@refused
def returns_here_and_there(lib, x):
    if x > 1:
        if x > 2:
            return x * 5
        x = x + 1
    return x


@refused
def returns_in_a_loop(lib, x):
    for _ in range(3):
        if x > 1:
            return x
    return x


@refused
def returns_in_one_branch(lib, x):
    if x > 1:
        return x


@refused
def loops_while(lib, x):
    while x > 1:
        x = x - 1
    return x


@refused
def loops_over_data(lib, x):
    for _ in x:
        pass
    return x


@refused
def comprehends_data(lib, x):
    return tuple([y for y in x])


@refused
def asserts(lib, x):
    assert x > 1
    return x


@refused
def searches(lib, x):
    if x in [1, 2]:
        x = x + 1
    return x


@refused
def one_branch_only(lib, x):
    if x > 1:
        y = x
    return y


@refused
def other_branch_only(lib, x):
    if x > 1:
        pass
    else:
        y = x
    return y


@refused
def deleted_in_a_branch(lib, x):
    y = x
    if x > 1:
        del y
    return y


@refused
def nothing_and_data(lib, x):
    if x > 1:
        y = None
    else:
        y = x
    return y


@refused
def texts(lib, x):
    if x > 1:
        y = "a"
    else:
        y = "b"
    return x, y


@refused
def different_lengths(lib, x):
    if x > 1:
        y = (x, 1)
    else:
        y = (x, 1, 2)
    return y


@refused
def list_and_tuple(lib, x):
    if x > 1:
        y = [x]
    else:
        y = (x,)
    return y[0]


@refused
def different_types(lib, x):
    if x > 1:
        y = x
    else:
        y = lib.fn.cast(x, dtype=lib.types.FLOAT)
    return y


@refused
def boolean_and_number(lib, x):
    if x > 1:
        y = True
    else:
        y = 3
    return y


@refused
def different_ranks(lib, x):
    if x > 1:
        y = lib.fn.reshape(x, shape=[1])
    else:
        y = x
    return y


@refused
def different_layouts(lib, x):
    y = lib.fn.full(x, shape=[2, 2])
    if x > 1:
        y = lib.fn.reshape(y, layout="HW")
    else:
        y = lib.fn.reshape(y, layout="WH")
    return y


@refused
def condition_of_several_elements(lib, x):
    if lib.fn.full(x, shape=[2]):
        x = x + 1
    return x


@refused
def number_in_and(lib, x):
    return x > 1 and x


@refused
def number_left_of_and(lib, x):
    return x and x > 1


@refused
def constant_number_in_or(lib, x):
    return x > 1 or 1


@refused
def nothing_in_and(lib, x):
    return (x > 1) and None


@refused
def several_elements_in_and(lib, x):
    return x > 1 and lib.fn.full(x, shape=[2]) > 1


@refused
def several_elements_in_not(lib, x):
    return not lib.fn.full(x, shape=[2])


@refused
def raises_in_a_branch(lib, x):
    if x > 1:
        raise ValueError("raised")
    return x


@refused
def attribute_that_is_not_there(lib, x):
    if x > 1:
        y = x.foo
    return x


def plain_everywhere(lib):
    @lib.pipeline.do_not_convert
    def plain(y):
        return y + 1 if y is not None else Callable(1)(y)

    return plain


@same
def not_converted(lib, x):
    return plain_everywhere(lib)(x)


class Decides:
    def __init__(self, x):
        self.x = x
        if x > 1:
            self.x = x + 1


@refused
def constructors(lib, x):
    return Decides(x).x


@refused
def changed_by_a_function(lib, x):
    y = x

    def change():
        nonlocal y
        y = y + 100

    if x > 1:
        change()
    return y


# Settings.


def test_at_the_call_and_in_the_decorator_of_experimental():
    def at_the_call(lib):
        def graph():
            return helper(numbers(lib))

        settings = {"batch_size": 4, "num_threads": 1, "device_id": None}
        one = lib.pipeline_def(graph)(enable_conditionals=True, **settings)
        return one.run()

    def experimental(lib):
        define = lib.pipeline.experimental.pipeline_def
        settings = {"batch_size": 4, "num_threads": 1, "device_id": None}
        return define(enable_conditionals=True, **settings)(lambda: helper(numbers(lib)))().run()

    assert_same(at_the_call)
    assert_same(experimental)


def test_without_it_conditions_are_refused():
    assert_same(lambda lib: lib.source([np.int32(1)], lambda x: 1 if x else 2).run())


def test_methods_as_definitions():
    class Data:
        limit = 1

        def define(self, lib, factor=1):
            x = numbers(lib)
            if x > self.limit:
                x = x * factor
            return x

    def run(lib):
        settings = {"batch_size": 4, "num_threads": 1, "device_id": None}
        make = lib.pipeline_def(enable_conditionals=True, **settings)(Data().define)
        return make(lib, factor=5).run()

    assert_same(run)


def test_random_numbers_do_not_depend_on_conditions():
    """Draws of a branch are made for all samples, in either library."""

    def define(lib, x, limit):
        drawn = 0.0
        if x > limit:
            drawn = lib.fn.random.uniform(range=(5, 6))
        return drawn, lib.fn.random.uniform(range=(0, 1))

    def run(lib):
        few, many = (scenario(functools.partial(define, limit=n))(lib) for n in (1, -1))
        drawn = [[float(np.asarray(b.at(i))) for i in range(4)] for b in (few[0], many[0])]
        assert drawn[0][:2] == [0, 0]
        assert drawn[0][2:] == drawn[1][2:], "the same draws"
        return [
            np.asarray(few[1].at(i)).tolist() == np.asarray(many[1].at(i)).tolist()
            for i in range(4)
        ]

    assert_same(run)


@pytest.mark.parametrize("by", ["input", "argument", "outer_condition", "items"])
def test_what_branches_make_of_a_drawn_condition(by):
    """A draw that is read where it decides differs from sample to sample there, too."""

    def define(lib, x):
        fn = lib.fn
        a = fn.random.uniform(values=[0.0, 1.0, 2.0, 3.0], seed=3)
        b = fn.random.uniform(values=[0.0, 1.0], seed=4)
        y = a
        if a:
            if by == "input":
                y = a * 10
            elif by == "argument":
                y = fn.reductions.sum(fn.full(1.0, shape=fn.cast(a, dtype=lib.types.INT32)))
            elif by == "items":
                y = fn.reductions.sum(fn.stack(a, a, a))
            elif b:
                y = a + 100
        else:
            y = a - 7
        return a, y

    def run(lib):
        pipe = lib.pipe(lambda: define(lib, None), 4, enable_conditionals=True)
        return [pipe.run() for _ in range(3)]

    assert_same(run)


def test_readers_in_branches(tmp_path):
    for k in range(7):
        tmp_path.joinpath(f"{k}.bin").write_bytes(bytes([k]))
    files = sorted(map(str, tmp_path.iterdir()))

    def define(lib, x):
        label = lib.fn.constant(idata=[70])
        if x % 2 == 1:
            _, label = lib.fn.readers.file(files=files, labels=list(range(7)), name="r")
            label = label + 1
        return label

    def run(lib):
        def graph():
            return define(lib, numbers(lib))

        pipe = lib.pipe(graph, 4, enable_conditionals=True)
        return [pipe.run() for _ in range(4)], pipe.epoch_size()

    assert_same(run)


# What works here only.

MORE: dict[str, tuple[Any, type[Exception], list[int | float]]] = {}


def more(error, values):
    def add(function):
        MORE[function.__name__] = (function, error, values)
        return function

    return add


@pytest.mark.parametrize("name", MORE)
def test_more_than_dali(name):
    define, error, values = MORE[name]

    def run(lib):
        (batch,) = scenario(define)(lib)
        return [np.asarray(batch.at(i)).item() for i in range(4)]

    assert_differs(run, error, values)


@more(TypeError, [0, -1, 2, 3])
def conditional_expression(lib, x):
    return x if x != 1 else -x


@more(TypeError, [9, 9, 12, 13])
def conditional_expression_in_a_comprehension(lib, x):
    return [y + 10 if y > 1 else 9 for y in (x,)][0]


@more(TypeError, [0, 1, 102, 103])
def functions_that_are_mapped(lib, x):
    return next(iter(map(helper, [x])))


@more(RuntimeError, [0.0, 0.0, 1.5, 1.5])
def whole_number_and_fraction(lib, x):
    y = 0
    if x > 1:
        y = 1.5
    return y


@more(RuntimeError, [2, 2, 1, 1])
def number_with_a_type(lib, x):
    y = 2
    if x > 1:
        y = np.uint8(1)
    return y


@more(TypeError, [2, 2, 1, 1])
def scalar_constants(lib, x):
    if x > 1:
        y = lib.types.Constant(1).uint8()
    else:
        y = lib.types.Constant(2).uint8()
    return y


@more(TypeError, [0, 1, 5, 6])
def private_names(lib, x):
    class Private:
        def __init__(self):
            self.__more = 3

        def method(self, y):
            if y > 1:
                y = y + self.__more
            return y

    return Private().method(x)


@more(RuntimeError, [7, 9, 11, 3])
def returns_in_a_chain(lib, x):
    if x == 0:
        return x + 7
    if x == 1:
        return x + 8
    elif x == 2:
        return x + 9
    return x
