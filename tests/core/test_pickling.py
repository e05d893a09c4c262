"""Functions that travel as code."""

from __future__ import annotations

import functools
import inspect
import math
import pickle

import pytest

from headrace import pickling
from headrace.errors import ArgumentTypeError, ArgumentValueError
from tests.e2e.support import run_python

BASE = 7


def there_and_back(value):
    return pickle.loads(pickling.dumps(value))


def at_the_top(number):
    """Documented."""
    return number + BASE


def test_functions_of_a_module_travel_by_name():
    assert there_and_back(at_the_top) is at_the_top


def test_marked_functions_travel_by_value():
    @pickling.pickle_by_value
    def marked(number, *, more: int = 1):
        return at_the_top(number) + more

    found = there_and_back(marked)
    assert found is not marked
    assert found(1) == 9
    assert found(1, more=2) == 10


def test_lambdas_with_globals_modules_and_closures():
    offset = [3]
    found = there_and_back(lambda x: math.floor(x) + BASE + offset[0])
    assert found(1.5) == 11


def test_functions_that_call_themselves_and_one_another():
    def factorial(n):
        return 1 if n < 2 else n * factorial(n - 1)

    def even(n):
        return n == 0 or odd(n - 1)

    def odd(n):
        return n != 0 and even(n - 1)

    assert there_and_back(factorial)(5) == 120
    assert there_and_back(even)(10)
    assert not there_and_back(odd)(10)


def test_what_functions_carry():
    def carrying(a=1, /, b=2, *, c=3):
        """Say something."""
        return a, b, c, [x * BASE for x in (1, 2)]

    carrying.note = "kept"
    found = there_and_back(carrying)
    assert found() == (1, 2, 3, [7, 14])
    assert found.__doc__ == "Say something."
    assert found.__qualname__ == carrying.__qualname__
    assert found.note == "kept"


def test_functions_in_containers():
    found = there_and_back({"f": functools.partial(lambda a, b: a - b, 5), "g": [lambda: BASE]})
    assert found["f"](2) == 3
    assert found["g"][0]() == 7


def test_marked_functions_are_no_wrappers():
    @pickling.pickle_by_value
    def marked(a: int) -> int:
        return a

    found = there_and_back(marked)
    assert not hasattr(found, "__wrapped__")
    assert inspect.signature(found) == inspect.signature(marked)


def test_local_classes():
    class Base:
        scale = BASE

    class Local(Base):
        def __init__(self, offset):
            self.offset = offset

        def __call__(self, x):
            return super().scale * x + self.offset

    assert there_and_back(Local(1))(2) == 15


PROGRAM = """
import threading
from headrace import pickling

lock = threading.Lock()  # what the functions of a file refer to stays in the file

def of_the_file(x):
    with lock:
        return x

class OfTheFile:
    pass

packed = pickling.dumps([of_the_file, OfTheFile(), lambda: of_the_file])
import pickle
function, instance, third = pickle.loads(packed)
assert function is of_the_file and type(instance) is OfTheFile and third() is of_the_file
print("by name")
"""


def test_what_the_main_file_has_travels_by_name(tmp_path):
    file = tmp_path / "program.py"
    file.write_text(PROGRAM)
    assert run_python(str(file)).stdout == "by name\n"
    # A new process does not find what was given on the command line, so that goes along.
    with pytest.raises(AssertionError, match=r"cannot be pickled.*lock"):
        run_python("-c", PROGRAM)


def test_only_functions_are_marked():
    for value in (3, math.floor, functools.partial(at_the_top)):
        with pytest.raises(ArgumentTypeError, match="Only functions"):
            pickling.pickle_by_value(value)


class Own:
    """A pickler that remembers."""

    def __init__(self):
        self.seen = []

    def dumps(self, value, **keywords):
        self.seen.append(keywords)
        return b"packed"

    def loads(self, data, **keywords):
        return data, keywords


@pytest.mark.parametrize("extra", [(), ({"a": 1},), ({"a": 1}, {"b": 2}), (None, {"b": 2})])
def test_the_users_own(extra):
    own = Own()
    pickler = pickling.Pickler((own, *extra) if extra else own)
    assert pickler.dumps(3) == b"packed"
    assert own.seen == [dict(extra[0] or {}) if extra else {}]
    loads, keywords = pickler.loads
    assert loads(b"x", **keywords) == (b"x", extra[1] if len(extra) > 1 else {})


@pytest.mark.parametrize("given", [3, (), (3,), (Own(), {}, {}, {}), "pickle"])
def test_what_is_no_pickler(given):
    with pytest.raises(ArgumentValueError, match="py_callback_pickler"):
        pickling.Pickler(given)
