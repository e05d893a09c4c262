"""Which files are found, and their labels."""

from __future__ import annotations

import os
import re
import sys

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from headrace.errors import ArgumentValueError
from headrace.operators.readers.listing import (
    IMAGE_AND_AUDIO_PATTERNS,
    given_files,
    list_classes,
    read_file_list,
    read_name_list,
)

FILES = (
    "b/2.jpg", "b/10.jpg", "a/z.PNG", "a/.hidden.jpg", "a/x.txt", "c/only.txt", "d/e/deep.jpg",
    ".hid/1.jpg", "top.jpg", "B/1.jpg", "a/noext", "ü/1.jpg", "a/é.jpg", "a/Z.jpg",
    "a/sub.jpg/in.jpg",
)  # fmt: skip


@pytest.fixture
def root(tmp_path):
    for name in FILES:
        path = tmp_path / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_bytes(b"x")
    (tmp_path / "empty").mkdir()
    return str(tmp_path)


def listed(root, file_filters=IMAGE_AND_AUDIO_PATTERNS, **options):
    found = list_classes(root, file_filters=file_filters, **options)
    assert found.labels.dtype == np.int32
    return list(zip(found.names, found.labels.tolist(), strict=True))


def test_classes_are_sorted_directories(root):
    # Upper case comes before lower case; directories without files have a number as well.
    assert listed(root) == [
        (".hid/1.jpg", 0),
        ("B/1.jpg", 1),
        ("a/.hidden.jpg", 2),
        ("a/Z.jpg", 2),
        ("a/z.PNG", 2),
        ("a/é.jpg", 2),
        ("b/10.jpg", 3),
        ("b/2.jpg", 3),
        ("ü/1.jpg", 7),
    ]


def test_root_may_end_with_a_slash_or_be_a_file_address(root):
    plain = list_classes(root, file_filters=["*.txt"])
    for other in (root + "/", "file://" + root):
        found = list_classes(other, file_filters=["*.txt"])
        assert list(found.names) == list(plain.names)
        assert os.path.samefile(found.path(0), plain.path(0))


def test_directory_filters_renumber(root):
    assert [label for _, label in listed(root, dir_filters=["a", "ü"])] == [0, 0, 0, 0, 1]
    assert {name[0] for name, _ in listed(root, dir_filters=["b"])} == {"B", "b"}
    assert {n[0] for n, _ in listed(root, dir_filters=["b"], case_sensitive=True)} == {"b"}


@pytest.mark.parametrize(
    ("patterns", "expected"),
    [
        (["*.txt"], ["a/x.txt", "c/only.txt"]),
        (["*.png"], ["a/z.PNG"]),
        (["[!1]*.jpg"], ["a/.hidden.jpg", "a/Z.jpg", "a/é.jpg", "b/2.jpg"]),
        (["[^1]*.jpg"], ["a/.hidden.jpg", "a/Z.jpg", "a/é.jpg", "b/2.jpg"]),
        (["?.jpg"], [".hid/1.jpg", "B/1.jpg", "a/Z.jpg", "a/é.jpg", "b/2.jpg", "ü/1.jpg"]),
        (["\\2.jpg"], ["b/2.jpg"]),
        (["[12]*"], [".hid/1.jpg", "B/1.jpg", "b/10.jpg", "b/2.jpg", "ü/1.jpg"]),
        (["x*", "*ext"], ["a/noext", "a/x.txt"]),
        (["*.jpg", "*2.jpg"], None),
    ],
)
def test_patterns(root, patterns, expected):
    names = [name for name, _ in listed(root, patterns)]
    if expected is None:
        assert len(names) == len(set(names))
    else:
        assert names == expected


def test_case_of_patterns(root):
    assert [n for n, _ in listed(root, ["*.PNG"], case_sensitive=True)] == ["a/z.PNG"]
    with pytest.raises(ArgumentValueError, match="No files found"):
        listed(root, ["*.png"], case_sensitive=True)
    assert [n for n, _ in listed(root, ["Z*"], case_sensitive=True)] == ["a/Z.jpg"]


@pytest.mark.skipif(sys.platform == "win32", reason="needs rights on Windows")
def test_links(root):
    os.symlink(f"{root}/b", f"{root}/link")
    os.symlink(f"{root}/b/2.jpg", f"{root}/b/3.jpg")
    os.symlink(f"{root}/a", f"{root}/b/4.jpg")  # to a directory
    os.symlink("/does/not/exist", f"{root}/b/5.jpg")  # found, and an error once it is read
    names = [name for name, _ in listed(root, dir_filters=["b", "link"], case_sensitive=True)]
    assert names == [f"{d}/{n}.jpg" for d in ("b", "link") for n in ("10", "2", "3", "5")]


def test_errors_of_directories(root):
    with pytest.raises(ArgumentValueError, match="No such file or directory"):
        listed(root + "/nope")
    with pytest.raises(ArgumentValueError, match="Not a directory"):
        listed(root + "/top.jpg")
    with pytest.raises(ArgumentValueError, match="file_filters"):
        listed(root, [])
    with pytest.raises(ArgumentValueError, match="dir_filters"):
        listed(root, dir_filters=[])
    with pytest.raises(ArgumentValueError, match="No files found"):
        listed(root, dir_filters=["empty"])


def list_file(tmp_path, content, root=None):
    path = tmp_path / "list.txt"
    path.write_bytes(content.encode())
    found = read_file_list(str(path), root)
    return list(zip(found.names, found.labels.tolist(), strict=True))


def test_list_file(tmp_path):
    content = (
        "a.jpg 3\n\n   \n/abs/b.jpg   4  \nwith space.jpg 5\n lead.jpg\t6\t\n"
        "c.jpg -1\nd.jpg 7\r\ne 1 2"
    )
    assert list_file(tmp_path, content) == [
        ("a.jpg", 3),
        ("/abs/b.jpg", 4),
        ("with space.jpg", 5),
        (" lead.jpg", 6),
        ("c.jpg", -1),
        ("d.jpg", 7),
        ("e 1", 2),
    ]


def test_names_of_a_list_file_are_relative_to_it_or_to_the_root(tmp_path, monkeypatch):
    (tmp_path / "list.txt").write_text("x/a.jpg 0\n/b.jpg 1\n")
    found = read_file_list(f"{tmp_path}/list.txt")
    assert [found.path(0), found.path(1)] == [f"{tmp_path}/x/a.jpg", "/b.jpg"]
    found = read_file_list(f"{tmp_path}/list.txt", "/data/")
    assert [found.path(0), found.path(1)] == ["/data/x/a.jpg", "/b.jpg"]
    monkeypatch.chdir(tmp_path)
    assert read_file_list("list.txt").path(0) == "x/a.jpg"


@pytest.mark.parametrize(
    "line", ["a.jpg", "a.jpg x", "a.jpg 1.5", "5", " 5", "a.jpg 0x10", "a.jpg1"]
)
def test_wrong_lines(tmp_path, line):
    with pytest.raises(ArgumentValueError, match="Line 2 of"):
        list_file(tmp_path, f"ok.jpg 0\n{line}\n")


LINES = st.text("ab/. 0-+9\t\r\vé:", max_size=9) | st.sampled_from(["", "a 1", "b/c d 2147483647"])


@given(st.lists(LINES, max_size=6), st.booleans())
def test_list_files_as_plain_python_reads_them(tmp_path_factory, lines, ends):
    path = tmp_path_factory.mktemp("lists") / "list.txt"
    content = "\n".join(lines) + "\n" * ends
    path.write_bytes(content.encode())
    stripped = [text for line in content.split("\n") if (text := line.rstrip(" \t\r"))]
    matches = [re.fullmatch(r"(.*[^\s])[ \t]+([+-]?[0-9]+)", text) for text in stripped]
    if not stripped or not all(matches):
        with pytest.raises(ArgumentValueError, match=r"No files found|expected the name|32 bits"):
            read_file_list(str(path))
    elif all(-(2**31) <= int(match[2]) < 2**31 for match in matches):
        found = read_file_list(str(path))
        assert list(found.names) == [match[1] for match in matches]
        assert found.labels.tolist() == [int(match[2]) for match in matches]
    if stripped:
        _, names = read_name_list(str(path), None)
        assert list(names) == stripped
        assert names.remote == ("://" in content)


@pytest.mark.parametrize(
    ("label", "fits"),
    [
        ("2147483647", True),
        ("-2147483648", True),
        ("+00000000000000000000005", True),
        ("2147483648", False),
        ("-2147483649", False),
        ("99999999999999999999999999", False),
    ],
)
def test_wide_labels(tmp_path, label, fits):
    if fits:
        assert list_file(tmp_path, f"a {label}") == [("a", int(label))]
        return
    with pytest.raises(ArgumentValueError, match=r"Line 1 of .*32 bits"):
        list_file(tmp_path, f"a {label}")


def test_errors_of_list_files(tmp_path):
    with pytest.raises(ArgumentValueError, match="does not exist"):
        read_file_list(f"{tmp_path}/nope")
    with pytest.raises(ArgumentValueError, match="is a directory"):
        read_file_list(str(tmp_path))
    with pytest.raises(ArgumentValueError, match="No files found"):
        list_file(tmp_path, "\n \n")
    with pytest.raises(ArgumentValueError, match="32 bits"):
        list_file(tmp_path, "a.jpg 99999999999")


def test_given_files():
    found = given_files(["b", "/a", "c"])
    assert found.labels.tolist() == [0, 1, 2]
    assert [found.path(k) for k in range(3)] == ["b", "/a", "c"]
    found = given_files(["b", "/a", "s3://x/y"], [7, -3, 0], "root")
    assert found.labels.tolist() == [7, -3, 0]
    assert [found.path(k) for k in range(3)] == ["root/b", "/a", "s3://x/y"]


def test_errors_of_given_files():
    with pytest.raises(ArgumentValueError, match="empty list"):
        given_files([])
    with pytest.raises(ArgumentValueError, match="has 1 values for the 2"):
        given_files(["a", "b"], [1])
    with pytest.raises(ArgumentValueError, match="has 0 values for the 2"):
        given_files(["a", "b"], [])
    with pytest.raises(ArgumentValueError, match="32 bits"):
        given_files(["a"], [2**31])
