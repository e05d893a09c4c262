"""With conditions on data, both branches run and are joined."""

from __future__ import annotations

import re

import pytest

from headrace import errors
from headrace.pipeline import do_not_convert
from tests.core.autograph.recorder import Data, Recorder, traced


@pytest.fixture
def x():
    return Data("x")


def test_statement(x):
    recorder = Recorder()
    seen = []

    def f(x):
        y = 0
        if x > 1:
            seen.append(list(recorder.guard))
            y = x
        else:
            seen.append(list(recorder.guard))
            x = x + 1
        return y, x

    y, z = traced(f, x, recorder=recorder)
    assert (repr(y), repr(z)) == ("[(x > 1) ? x : 0]", "[(x > 1) ? x : (x + 1)]")
    assert seen == [[("(x > 1)", True)], [("(x > 1)", False)]]


def test_elif_and_nesting(x):
    def f(x):
        if x == 1:
            y = 1
        elif x == 2:
            y = 2
            if x > 5:
                y = x
        else:
            y = 3
        return y

    assert repr(traced(f, x)) == "[(x == 1) ? 1 : [(x == 2) ? [(x > 5) ? x : 2] : 3]]"


def test_guards_nest(x):
    recorder = Recorder()

    def f(x):
        if x > 1:
            if x > 2:
                return (x > 3 and note(x)) if x > 4 else x
            return x
        return x

    def note(v):
        seen.append([guard for guard, _ in recorder.guard])
        return v

    seen = []
    traced(f, x, recorder=recorder)
    assert seen == [["(x > 1)", "(x > 2)", "(x > 4)", "(x > 3)"]]


def test_expressions(x):
    def f(x):
        return (x and 0) or x, not x, 0 < x < 3, x if x > 1 else -1, 1 < x + 2 < 5

    assert [repr(v) for v in traced(f, x)] == [
        "[[x ? 0 : x] ? [x ? 0 : x] : x]",
        "not x",
        "[(x > 0) ? (x < 3) : (x > 0)]",
        "[(x > 1) ? x : -1]",
        "[((x + 2) > 1) ? ((x + 2) < 5) : ((x + 2) > 1)]",
    ]


def test_an_operand_is_evaluated_once(x):
    calls = []

    def f(x):
        return 0 < middle() < 5 and right()

    def middle():
        calls.append("middle")
        return x

    def right():
        calls.append("right")
        return x

    traced(f, x)
    assert calls == ["middle", "right"]


def test_what_both_branches_have_stays(x):
    fixed = object()

    def f(x):
        if x:
            a, b, c, d = 1, "t", fixed, x
        else:
            a, b, c, d = 1, "t", fixed, x
        return a, b, c, d

    assert traced(f, x) == (1, "t", fixed, x)
    assert not isinstance(traced(f, x)[0], Data)


def test_true_is_not_one(x):
    def f(x):
        if x:
            a = True
        else:
            a = 1
        return a

    assert repr(traced(f, x)) == "[x ? True : 1]"


def test_structures_are_joined_leaf_by_leaf(x):
    def f(x):
        y = {"a": (x, [1, 2]), "b": 4}
        if x:
            y = {"b": x, "a": (2, [x, 2])}
        return y

    assert repr(traced(f, x)) == "{'b': [x ? x : 4], 'a': ([x ? 2 : x], [[x ? x : 1], 2])}"


def test_places_are_joined_and_put_back(x):
    class TensorHandle:
        pass

    def f(x):
        h, d = TensorHandle(), {"k": 1, "o": TensorHandle()}
        h.a, d["o"].b = x, x
        if x:
            h.a = x + 1
            d["k"] = x
            d["o"].b = 5
        else:
            assert h.a is x
            assert d["k"] == 1
            h.a = x * 2
        return h.a, d["k"], d["o"].b

    assert repr(traced(f, x)) == "([x ? (x + 1) : (x * 2)], [x ? x : 1], [x ? 5 : x])"


def test_a_place_of_one_branch_only_is_refused(x):
    class TensorHandle:
        pass

    def f(x):
        h = TensorHandle()
        if x:
            h.a = x
        return h

    with pytest.raises(
        errors.UsageError, match=r"'h.a' must also be initialized in the `else` branch"
    ):
        traced(f, x)


def test_globals_and_nonlocals(x):
    n = 1

    def f(x):
        global changed
        nonlocal n
        changed = 0
        if x:
            changed = 1
            n = 2
        return changed, n

    assert repr(traced(f, x)) == "([x ? 1 : 0], [x ? 2 : 1])"


def line_of(text):
    with open(__file__) as file:
        return next(k for k, line in enumerate(file, 1) if line.rstrip().endswith(f"# {text}"))


def test_messages_name_variable_and_lines(x):
    def one_branch(x):
        if x:  # the if of y
            y = x
        return y  # reads y

    with pytest.raises(errors.UsageError) as caught:
        traced(one_branch, x)
    message = str(caught.value)
    assert "'y'" in message
    assert "initialized in the `else` branch" in message
    assert f"{__file__}:{line_of('the if of y')} " in message
    assert f"{__file__}:{line_of('reads y')} " in message


def test_variables_that_nobody_reads_may_differ(x):
    def f(x):
        if x:
            text = "a"
            only = 3
        else:
            text = x
        for text in ("b",):
            pass
        return x, text

    assert traced(f, x) == (x, "b")


@pytest.mark.parametrize("statement", ["break", "continue", "return"])
def test_leaving_a_branch_is_refused(statement, x, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(
        f"def f(x):\n    for i in range(3):\n        if x:\n            if i:\n"
        f"                {statement}\n            x = x + 1\n        x = x + 2\n    return x\n"
    )
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.raises(errors.ConditionalExitError) as caught:
        traced(names["f"], x)
    assert isinstance(caught.value, TypeError)
    assert isinstance(caught.value, RuntimeError)
    assert f"`{statement}` at {path}:5 in f" in str(caught.value)
    assert f"{path}:3 in f" in str(caught.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("while x: pass", "`while`"),
        ("assert x", "`assert`"),
        ("[1 for i in (1,) if x]", "the `if` of a comprehension"),
        ("for i in x: pass", "not iterable"),
        ("[i for i in x]", "not iterable"),
    ],
)
def test_what_cannot_be_on_data(text, words, x, tmp_path):
    path = tmp_path / "program.py"
    path.write_text(f"def f(x):\n    {text}\n")
    names = {}
    exec(compile(path.read_text(), str(path), "exec"), names)
    with pytest.raises(TypeError, match=re.escape(words)) as caught:
        traced(names["f"], x)
    assert f"{path}:2 in" in str(caught.value)


def test_errors_leave_all_branches(x):
    def f(x):
        try:
            y = (x and 1 / 0) if x else x
        except ZeroDivisionError:
            y = 1
        try:
            if x:
                y = 1 / 0
        except ZeroDivisionError:
            y = 2
        if x:
            y = 3
        return y

    assert repr(traced(f, x)) == "[x ? 3 : 2]"


def test_what_is_not_converted(x):
    @do_not_convert
    def marked(x):
        return 1 if x else 2

    def f(x, g):
        return g(x)

    marked_lambda = do_not_convert(lambda x: not x)
    for g in (marked, marked_lambda, bool):
        with pytest.raises(TypeError, match="truth of data"):
            traced(f, x, g)


def test_within_a_definition_marks_hold_too(x):
    def f(x):
        @do_not_convert
        def plain(x):
            return 1 if x else 2

        return plain(x)

    with pytest.raises(TypeError, match="truth of data"):
        traced(f, x)


def test_libraries_are_not_converted(x):
    import fractions
    import functools
    import operator

    from headrace.autograph.selection import is_selected

    assert not is_selected(fractions.Fraction.__add__)
    assert not is_selected(pytest.raises)
    assert not is_selected(errors.did_you_mean)
    assert is_selected(line_of)
    assert traced(lambda f, v: f(v), functools.partial(operator.add, 1), 2) == 3
