"""Optional libraries."""

from __future__ import annotations

import pytest

from headrace._optional import import_optional
from headrace.errors import MissingDependencyError


def test_installed():
    assert import_optional("json", purpose="Nothing", install="json").loads("1") == 1


def test_missing_says_what_to_install():
    with pytest.raises(MissingDependencyError, match=r"Decoding audio .*'headrace\[audio\]'"):
        import_optional("no_such_library.part", purpose="Decoding audio", install="headrace[audio]")


def test_library_that_is_broken_is_not_called_missing(tmp_path, monkeypatch):
    (tmp_path / "broken_library.py").write_text("import no_such_library\n")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.raises(ModuleNotFoundError) as caught:
        import_optional("broken_library", purpose="Nothing", install="broken")
    assert not isinstance(caught.value, MissingDependencyError)
