"""With conditions on plain values, rewritten functions do what Python does."""

from __future__ import annotations

import functools
import inspect
import pickle
import traceback

import pytest

from headrace.autograph.conversion import convert
from tests.core.autograph.recorder import traced

CASES = []


def case(*arguments):
    """A function to call with each of `arguments`, as it stands and rewritten."""

    def add(function):
        CASES.append(pytest.param(function, arguments, id=function.__name__))
        return function

    return add


def outcome(function, argument, steps):
    try:
        return function(argument, steps.append), steps
    except Exception as error:
        return type(error), str(error), steps


@pytest.mark.parametrize(("function", "arguments"), CASES)
def test_same_as_python(function, arguments):
    for argument in arguments:
        rewritten = convert(function)
        assert rewritten is not function
        expected = outcome(function, argument, [])
        assert outcome(rewritten, argument, []) == expected
        steps = []
        assert outcome(lambda *a: traced(function, *a), argument, steps) == expected


@case(0, 1, 2, 3)
def branches(x, step):
    if step(1) or x == 0:
        step("a")
        y = 1
    elif x == 1:
        y = 2
    elif x == 3:
        step("c")
    if x != 3 and not x == 2:
        return y
    return y  # UnboundLocalError


@case(0, 1, 2)
def order_of_evaluation(x, step):
    def note(v):
        step(v)
        return v

    a = note(0) or note(x) or note(5)
    b = note(1) and note(x) and note("end")
    c = note(x) if note(x - 1) else note("else")
    d = note(0) < note(x) < note(2) < note(9)
    e = [note(i) if i else -1 for i in range(3) if note(i) or x]
    return a, b, c, d, e, 1 < x < 3, not note(x)


class Truth:
    def __init__(self, step, value):
        self.step, self.value = step, value

    def __bool__(self):
        self.step("asked")
        return self.value


@case(True, False)
def truth_is_asked_for_once(x, step):
    t = Truth(step, x)
    if t:
        step("if")
    return (t and 1) is t, (t or 1) is t, not t, 1 if t else 2


@case(0, 1, 2, 3, 7)
def early_returns(x, step):
    if x == 0:
        return "zero"
    for i in range(x):
        if i == 1:
            continue
        if i == 2:
            if x == 3:
                break
            return "four"
        step(i)
    else:
        step("else")
    if x == 1:
        step("one")
        return None
    if x == 2:
        raise ValueError("two")
    with_try = 0
    try:
        if x == 3:
            return "three"
        raise KeyError(x)
    except KeyError:
        if x == 7:
            return "seven"
    finally:
        step("finally")


@case(0, 1)
def unreachable(x, step):
    if x:
        return str  # UnboundLocalError
    else:
        return 0
    str = 3


@case(0, 1, 2)
def continues(x, step):
    for i in range(4):
        if i == x:
            step("same")
            continue
        if i == 3:
            continue
        if i > x:
            if i == 2:
                continue
            step("more")
        for _ in range(2):
            if x:
                continue
            step("inner")
        step(i)


@case(0, 1)
def variables(x, step):
    global made_global
    y = 1

    def inner():
        nonlocal y
        if x:
            y += 5
        return y

    def default(a, b=y, *c, d=x or 3, **e):
        return a, b, c, d, e

    if x:
        made_global = x
        import math as m

        class Local:
            z = 3

        del y
        y = 8
    else:
        m = Local = None
    if (n := x + 1) > 1:
        step(n)
    return inner(), default(1), default(1, 2, 3, d=4, e=5), m, Local and Local.z, n


class Base:
    def __init__(self, x):
        self.__x = x

    def value(self):
        return self.__x if self.__x else "none"

    @property
    def double(self):
        return self.__x * 2

    @classmethod
    def make(cls, x):
        return cls(x) if x else None

    @staticmethod
    def static(x):
        return x and x + 1


class Derived(Base):
    def value(self):
        return super().value(), super().double, __class__.__name__

    def __call__(self, x):
        return x if x else self.value()


@case(0, 1)
def classes(x, step):
    d = Derived(x)
    return d.value(), d(0), d(4), Derived.make(x) is None, Base.static(x), d.static(3), d.double


@case(0, 2)
def generators(x, step):
    def count(n):
        while True:
            if n > 3:
                return
            got = yield n
            n = n + 1 if got is None else got

    g = count(x)
    next(g)
    return [*count(x)], g.send(3), sum(i if i else 7 for i in count(x))


@case(1, "a", None, [1, 2], {"k": 1})
def matching(x, step):
    match x:
        case 1 | 2:
            return "number"
        case str(s) if s and step(s) is None:
            return s
        case [a, *b]:
            return a, b
        case {"k": v, **rest}:
            return v, rest
    return None


@case(0, 1)
def errors(x, step):
    try:
        y = 1 / x if x or True else 0
    except ZeroDivisionError as error:
        step(str(error))
        y = -1
    try:
        if x:
            z = undefined_name
    except NameError:
        z = 3
    assert x or y, "message"
    return y, z


@case(0, 3)
def calls(x, step):
    add = functools.partial(lambda a, b=2: a + b if a else b, b=5)
    return (
        list(map(lambda v: v or "zero", [0, x])),
        list(filter(lambda v: v and v > 1, [0, x])),
        functools.reduce(lambda a, b: a or b, [0, x, 7]),
        add(x),
        max([x, 1], key=lambda v: -v if v else 9),
        sorted({x, 5}, key=abs),
        (lambda *a, **k: (a, k))(*[x], k=x),
    )


@case(0, 1)
def strings_and_walrus(x, step):
    z = None
    items = [last := i for i in range(3) if i or x]
    return f"{x if x else 'none'} {x and 1!r:>5}", items, last, [y for y in [x] if (z := y)], z


@case(1)
def decorated_inside(x, step):
    def deco(f):
        @functools.wraps(f)
        def wrapper(*a):
            step("called")
            return f(*a) if a else None

        return wrapper

    @deco
    def f(a):
        """Docs."""
        return a and a + x

    return f(1), f.__name__, f.__doc__, f()


def test_functions_look_the_same():
    def f(a, b: int = 3, *, c: str = "c") -> int:
        """Docs."""
        return a if a else b

    f.attribute = 5
    g = convert(f)
    assert inspect.signature(g) == inspect.signature(f)
    for name in ("__name__", "__qualname__", "__module__", "__doc__", "__dict__"):
        assert getattr(g, name) == getattr(f, name)
    assert g.__code__.co_filename == __file__
    assert g.__code__.co_qualname == f.__code__.co_qualname
    assert convert(g) is g


def test_changed_defaults_and_closures_are_seen():
    y = 1

    def f(a=0):
        return a or y

    assert convert(f)() == 1
    y = 2
    f.__defaults__ = (5,)
    assert convert(f)() == 5
    f.__defaults__ = (0,)
    assert convert(f)() == 2


def test_tracebacks_have_the_user_s_lines_only():
    def inner(x):
        if x:
            return 1 if not x else 1 / (x and 0)  # the line
        return 0

    def outer(x):
        y = x and inner(x)
        return y

    with pytest.raises(ZeroDivisionError) as caught:
        traced(outer, 1)
    frames = traceback.extract_tb(caught.value.__traceback__)
    own = [f for f in frames if f.filename == __file__]
    assert [f.name for f in own][-2:] == ["outer", "inner"]
    assert own[-1].line.endswith("# the line")
    assert frames[-1].filename == __file__, "no frame of the library within"
    first = next(k for k, f in enumerate(frames) if f.name == "outer")
    assert all(f.filename == __file__ for f in frames[first:])


def test_lambdas_of_one_line():
    a, b = (lambda x: x or 1), (lambda x: x or 2)
    assert (convert(a)(0), convert(b)(0)) == (1, 2)
    assert convert(a) is not a


def test_functions_without_source_are_left_alone():
    names = {}
    exec("def f(x):\n    return x or 1", names)
    assert convert(names["f"]) is names["f"]


def test_rewritten_functions_work_without_tracing():
    assert pickle.loads(pickle.dumps(convert(Base.static).__name__)) == "static"
    assert convert(Base.static)(0) == 0
