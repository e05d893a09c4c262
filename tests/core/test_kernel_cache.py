"""Where compiled code is found and kept, whatever can be written."""

from __future__ import annotations

import os
import tempfile
import warnings
from pathlib import Path

import pytest

from headrace import kernel_cache

CONTENT = b"compiled"


@pytest.fixture
def temporary(tmp_path, monkeypatch):
    """A folder for temporary files of the test's own, and a process that was told nothing yet."""
    folder = tmp_path / "temporary"
    folder.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(folder))
    monkeypatch.setattr(kernel_cache, "_temporary", kernel_cache._Temporary())
    return folder


@pytest.fixture
def closed(tmp_path):
    """A folder that nobody can make, root included: it is below a file."""
    (tmp_path / "file").touch()
    return tmp_path / "file" / "folder"


def test_the_first_folder_takes_it(tmp_path):
    places = [tmp_path / "a" / "b", tmp_path / "c"]
    assert kernel_cache.find("x", places) is None
    kernel_cache.keep("x", CONTENT, places)
    assert kernel_cache.find("x", places) == CONTENT
    assert [p.name for p in (tmp_path / "a" / "b").iterdir()] == ["x"]
    assert not (tmp_path / "c").exists()


def test_a_later_folder_is_read_and_written_without_a_word(tmp_path, closed):
    places = [closed, tmp_path / "c"]
    kernel_cache.keep("x", CONTENT, places)
    assert (tmp_path / "c" / "x").read_bytes() == CONTENT
    assert kernel_cache.find("x", places) == CONTENT


def test_where_nothing_can_be_written_one_warning_tells(temporary, closed):
    with pytest.warns(RuntimeWarning) as caught:
        kernel_cache.keep("x", CONTENT, [closed])
    (warning,) = caught
    kernel_cache.keep("y", CONTENT, [closed])  # without another
    folder = temporary / f"headrace-{os.getuid()}"
    for part in (str(closed), "Not a directory", str(folder), "HEADRACE_CACHE_DIR"):
        assert part in str(warning.message)
    assert sorted(p.name for p in folder.iterdir()) == ["x", "y"]
    assert folder.stat().st_mode & 0o777 == 0o700
    assert kernel_cache.find("x", [closed]) == CONTENT


def test_without_a_home_there_is_the_temporary_folder(temporary):
    with pytest.warns(RuntimeWarning, match="no home"):
        kernel_cache.keep("x", CONTENT, [])
    assert kernel_cache.find("x", []) == CONTENT


@pytest.mark.parametrize("kind", ["open to all", "a link", "a file"])
def test_a_temporary_folder_that_others_may_have_made_is_not_used(temporary, closed, kind):
    folder = temporary / f"headrace-{os.getuid()}"
    if kind == "open to all":
        folder.mkdir()
        folder.chmod(0o777)
    elif kind == "a link":
        (temporary / "target").mkdir(mode=0o700)
        folder.symlink_to(temporary / "target")
    else:
        folder.touch()
    for place in (folder, temporary / "target"):
        if place.is_dir():
            (place / "x").write_bytes(b"planted")
    assert kernel_cache.find("x", [closed]) is None
    with pytest.warns(RuntimeWarning) as caught:
        kernel_cache.keep("y", CONTENT, [closed])
    own = kernel_cache._temporary.folder()
    assert own != folder
    assert own.stat().st_mode & 0o777 == 0o700
    assert str(own) in str(caught[0].message)
    assert (own / "y").read_bytes() == CONTENT


def test_without_any_folder_nothing_is_kept(temporary, closed, monkeypatch):
    monkeypatch.setattr(tempfile, "tempdir", None)
    monkeypatch.setattr(tempfile, "_candidate_tempdir_list", lambda: [str(closed)])
    with pytest.warns(RuntimeWarning, match="every process compiles them again"):
        kernel_cache.keep("x", CONTENT, [closed])
    assert kernel_cache.find("x", [closed]) is None
    with warnings.catch_warnings(action="error"):
        assert kernel_cache.writable_folder(closed, "cupy") is None


def test_a_file_is_whole_or_not_there(tmp_path, monkeypatch, temporary):
    def full_disk(*_):
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full_disk)
    with pytest.warns(RuntimeWarning, match="No space left"):
        kernel_cache.keep("x", CONTENT, [tmp_path / "a"])
    assert list((tmp_path / "a").iterdir()) == []
    assert not list(temporary.glob("*/*"))


class TestFolders:
    @pytest.fixture(autouse=True)
    def _environment(self, monkeypatch):
        for name in ("HEADRACE_CACHE_DIR", "XDG_CACHE_HOME"):
            monkeypatch.delenv(name, raising=False)

    def test_of_the_user(self, monkeypatch, tmp_path):
        monkeypatch.setenv("HOME", str(tmp_path))
        own = tmp_path / ".cache" / "headrace" / "kernels"
        assert kernel_cache.folders() == [own]
        assert kernel_cache.folders(tmp_path / "beside") == [tmp_path / "beside", own]
        monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "shared"))
        assert kernel_cache.folders() == [tmp_path / "shared" / "headrace" / "kernels"]

    def test_the_chosen_one_alone(self, monkeypatch, tmp_path):
        monkeypatch.setenv("HEADRACE_CACHE_DIR", str(tmp_path))
        assert kernel_cache.folders(tmp_path / "beside") == [tmp_path / "kernels"]

    def test_of_a_user_without_a_home(self, monkeypatch, tmp_path):
        def no_home():
            raise RuntimeError("Could not determine home directory.")

        monkeypatch.setattr(Path, "home", no_home)
        assert kernel_cache.folders() == []
        assert kernel_cache.folders(tmp_path) == [tmp_path]


def test_a_folder_for_libraries_that_write_themselves(tmp_path, temporary, closed):
    assert kernel_cache.writable_folder(tmp_path / "cupy", "cupy") == tmp_path / "cupy"
    with pytest.warns(RuntimeWarning, match="HEADRACE_CACHE_DIR"):
        folder = kernel_cache.writable_folder(closed, "cupy")
    assert folder == temporary / f"headrace-{os.getuid()}" / "cupy"
    assert folder.is_dir()
