"""The check of docstrings, class names and marks of merges finds what it is for."""

from __future__ import annotations

import pytest

from tools.check_words import ROOT, merge_marks, problems, questions, shared_names


@pytest.mark.parametrize(
    "text",
    [
        '"""What a module has."""',
        'class A:\n    """Whether it is one."""',
        'def f():\n    """\n    How to do it.\n    """',
        'def f(self):\n    self.a = 1\n    """``Where`` it is."""',
        'a: int = 1\n"""Whoever has it."""',
        'if True:\n    def f():\n        """When it is due."""',
        "#: Which of them.\na = 1",
    ],
)
def test_questions_are_found(text):
    assert len(list(questions(text))) == 1


def test_other_texts_are_left_alone():
    text = '"""Return what is there."""\na = "What it is"\n# What a comment says\n"""Whereas."""'
    assert list(questions(text)) == []


def test_public_classes_of_one_name_are_found():
    files = [("a.py", "class A: ...\nclass _B: ..."), ("b.py", "class A: ...\nclass _B: ...")]
    assert shared_names([*files, ("c.py", "class C: ...")]) == {"A": ["a.py", "b.py"]}


def test_marks_of_merges_are_found():
    text = "\n".join(["a", "<" * 7 + " HEAD", "=" * 7, "b", ">" * 7 + " 19ff (b)", "x >>> y"])
    assert list(merge_marks(text)) == [2, 5]


def test_the_sources_have_neither():
    assert list(problems(ROOT)) == []
